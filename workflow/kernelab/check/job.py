"""What the checking process is told on its standard input, and what it says on its standard output."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from kernelab.plan.catalogue import Kernel, Operation
from kernelab.records.check import CheckedProblem

Stage = Literal["start", "inputs", "reference", "load", "run", "compare"]


class Part(BaseModel):
    """A frozen part of the conversation."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CheckJob(Part):
    """One arm to check.

    Attributes:
        device: `gpu` or `emulated`; `uuid` of the GPU.
        folder: kernels/<operation>, absolute.
        kernel_name, kernel, levels: the arm; `levels` as in its Build.
        library: the operation's library function, to compare with; empty for none.
        cubin, ptx: files, absolute; empty for a library function.
        problems: values by name.
        seed: of the inputs.
    """

    device: Literal["gpu", "emulated"]
    uuid: str
    folder: str
    operation: Operation
    kernel_name: str
    kernel: Kernel
    levels: dict[str, str]
    library: str
    cubin: str
    ptx: str
    problems: dict[str, dict[str, int | float]]
    seed: int


class Progress(Part):
    """What is being done now: where the process is when it hangs or dies."""

    event: Literal["progress"] = "progress"
    problem: str
    stage: Stage


class Result(Part):
    """One problem is done. `stopped`: the device can do no more in this process."""

    event: Literal["result"] = "result"
    problem: str
    result: CheckedProblem
    stopped: bool = False


class Refusal(Part):
    """The check cannot be made: the user's mistake, or a broken machine."""

    event: Literal["refusal"] = "refusal"
    kind: Literal["user_error", "broken_machine"]
    message: str


class Done(Part):
    """Nothing more follows."""

    event: Literal["done"] = "done"


Event = Annotated[Progress | Result | Refusal | Done, Field(discriminator="event")]
EVENT: TypeAdapter[Progress | Result | Refusal | Done] = TypeAdapter(Event)
