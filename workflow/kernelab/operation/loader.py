"""Loading the Python that belongs to an operation: operation.py, and the prepare hook beside a kernel's source."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelab.errors import UserError
from kernelab.plan.catalogue import Kernel, Operation
from kernelab.plan.expression import Number

Arrays = Mapping[str, NDArray[Any]]
Prepare = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True)
class LoadedOperation:
    """An operation with the functions of its operation.py.

    `file` is how messages name it. `make_inputs` is None where operation.py leaves the inputs to kernelab.
    """

    operation: Operation
    file: str
    module: ModuleType
    reference: Callable[[Mapping[str, Number], Arrays], Mapping[str, NDArray[Any]]]
    make_inputs: Callable[[Mapping[str, Number], np.random.Generator], Mapping[str, NDArray[Any]]] | None

    def library(self, name: str) -> Callable[..., Callable[[], None]]:
        """The function that makes the launch of a library kernel.

        Raises:
            UserError: operation.py has no such function.
        """
        return _function(self.module, name, self.file, "the catalogue names it as a library kernel")


def load_operation(folder: Path, operation: Operation) -> LoadedOperation:
    """Load kernels/<operation>/operation.py.

    Raises:
        UserError: it is missing, raises when imported, or lacks `reference`.
    """
    path = folder / "operation.py"
    shown = _shown(path)
    module = _load(path, shown)
    make_inputs = getattr(module, "inputs", None)
    if make_inputs is not None and not callable(make_inputs):
        raise UserError(f"{shown}: inputs must be a function inputs(problem, rng)")
    reference = _function(
        module, "reference", shown, "every operation needs its float64 result: reference(problem, arrays)"
    )
    return LoadedOperation(operation, shown, module, reference, make_inputs)


def load_prepare(folder: Path, kernel: Kernel) -> Prepare | None:
    """The prepare hook of a kernel: a function of <source stem>.py beside its source; None where it has none.

    Raises:
        UserError: the file or the function is missing, or the file raises when imported.
    """
    if kernel.prepare is None or kernel.source is None:
        return None
    path = (folder / kernel.source).with_suffix(".py")
    shown = _shown(path)
    return _function(_load(path, shown), kernel.prepare, shown, "the catalogue names it under prepare")


def _load(path: Path, shown: str) -> ModuleType:
    if not path.is_file():
        raise UserError(f"{shown}: does not exist; the catalogue needs it")
    name = f"kernelab_loaded_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look their module up by name. No .pyc: kernels/ is the user's folder, and it may be read-only.
    sys.modules[name] = module
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise UserError(f"{shown}: {blame(error, path)}") from None
    finally:
        sys.dont_write_bytecode = writes
    return module


def _function(module: ModuleType, name: str, shown: str, why: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(f"{shown}: has no function {name}; {why}")
    return function


def blame(error: BaseException, path: Path | str) -> str:
    """An exception in a user's file in one line: the file's last line on the way, the type and the message."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == Path(path).name:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    message = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{where}{type(error).__name__}: {message}" if message else f"{where}{type(error).__name__}"


def _shown(path: Path) -> str:
    return Path(*path.parts[-3:]).as_posix()
