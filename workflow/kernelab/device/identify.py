"""Which device a config means: a GPU, resolved once through CUDA's own order to its UUID, or `emulated`.

Uses the driver alone (libcuda by ctypes; about 0.1 s where a driver is present, nothing where none is), so that the plan can be
made on any machine at every DAG parse. NVML ignores CUDA_VISIBLE_DEVICES and orders cards by bus; the UUID is
what timing, NVML, locks and records share.
"""

from __future__ import annotations

import ctypes
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kernelab.errors import UserError
from kernelab.plan.arms import Device
from kernelab.plan.load import DEFAULT_ARCH
from kernelab.records.layout import RESULTS

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{MAJOR,MINOR}
SAFE_ID = re.compile(r"^[a-z0-9][a-z0-9-]*$")
EMULATED = Device(id="emulated", kind="emulated", name="emulated", arch=DEFAULT_ARCH)


@dataclass(frozen=True)
class Gpu:
    """A GPU as CUDA lists it."""

    index: int
    uuid: str
    name: str
    arch: str

    @property
    def id(self) -> str:
        """The name of its folder below results/: readable, and unique between two equal cards."""
        return f"{slug(self.name)}-{self.uuid.removeprefix('GPU-')[:8]}"


def slug(name: str) -> str:
    """A card's name as a folder's name: nvidia-h200."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@lru_cache(maxsize=1)
def list_gpus() -> tuple[Gpu, ...]:
    """Every GPU that CUDA shows this process, in CUDA's order; empty where there is no driver or no GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ()
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    get_uuid = getattr(cuda, "cuDeviceGetUuid_v2", cuda.cuDeviceGetUuid)
    gpus = []
    for index in range(count.value):
        device, raw, name = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(256)
        major, minor = ctypes.c_int(), ctypes.c_int()
        calls = (
            cuda.cuDeviceGet(ctypes.byref(device), index),
            get_uuid(raw, device),
            cuda.cuDeviceGetName(name, len(name), device),
            cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device),
            cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device),
        )
        if any(calls):
            continue
        digits = bytes(raw).hex()
        uuid = f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        gpus.append(Gpu(index, uuid, name.value.decode(errors="replace"), f"sm_{major.value}{minor.value}"))
    return tuple(gpus)


def identify(wanted: str) -> Device:
    """The device that a config's `device` names.

    Args:
        wanted: auto, emulated, an index in CUDA's order, a UUID (or its start), a name (or part of one), or the id
            of a card that results/ holds timings of, though it is not here (their tables can be made anywhere).

    Raises:
        UserError: nothing matches, or more than one does.
    """
    if wanted == "emulated":
        return EMULATED
    gpus = list_gpus()
    if wanted == "auto":
        return _device(gpus[0]) if gpus else EMULATED
    listed = "; ".join(f"{gpu.index}: {gpu.name} {gpu.uuid}" for gpu in gpus) or "no GPU is visible to CUDA"
    if wanted.isdigit():
        matching = [gpu for gpu in gpus if gpu.index == int(wanted)]
    elif wanted.upper().startswith("GPU-"):
        matching = [gpu for gpu in gpus if gpu.uuid.lower().startswith(wanted.lower())]
    else:
        matching = [gpu for gpu in gpus if wanted.lower() in gpu.name.lower()]
    if not matching and (recorded := recorded_device(RESULTS / wanted)) is not None:
        return recorded
    if len(matching) != 1:
        reason = (
            "matches more than one GPU; name its index or UUID"
            if matching
            else "is not here; use auto or emulated"
        )
        raise UserError(f"config.yaml: device: {wanted} {reason} ({listed})")
    return _device(matching[0])


def recorded_device(folder: Path) -> Device | None:
    """The card that a folder below results/ has timings of, as they describe it; None where it has none."""
    for path in sorted(folder.glob("timing/*.json")) if SAFE_ID.match(folder.name) else ():
        try:
            card = json.loads(path.read_text(encoding="utf-8"))["card"]
            return Device(
                id=folder.name,
                kind="gpu",
                name=card["name"],
                arch=card["arch"],
                uuid=card["uuid"],
                recorded=True,
            )
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _device(gpu: Gpu) -> Device:
    return Device(id=gpu.id, kind="gpu", name=gpu.name, arch=gpu.arch, uuid=gpu.uuid)
