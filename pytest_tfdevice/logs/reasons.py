"""Why an op of a placement log is on the CPU: its type and a kernel table → a reason.

A log has no dtypes and no requests, so that a reason is certain only where the log itself tells, or
where no kernel exists whatever the dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_tfdevice.classify import uses_variable
from pytest_tfdevice.errors.placement import Failure
from pytest_tfdevice.errors.reasons import Known, reason_of
from pytest_tfdevice.kernels.match import usable
from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.logs.facts import LogFacts
from pytest_tfdevice.model import OpSignature
from pytest_tfdevice.reason import Reason

PLUGINS = ("METAL", "DirectML")
"""Names of GPUs whose kernels are a plugin's."""

COMMON_DTYPES = (
    *("bfloat16", "bool", "complex128", "complex64", "float16", "float32", "float64"),
    *("int16", "int32", "int64", "int8", "uint16", "uint32", "uint64", "uint8"),
)
"""What tensors of a model are made of; an op that has kernels for these has them for all."""


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The kernel table that a log is read with, and why it is that one."""

    registry: KernelRegistry | None
    why: str = ""
    matches: bool = False
    """True where the log may be of that very release."""


def _dtypes(found: set[str]) -> str:
    """The dtypes by name, or, where they are most, those that are missing; "" for all, or for the
    two that an index can have."""
    missing = [dtype for dtype in COMMON_DTYPES if dtype not in found]
    if not missing or found == {"int32", "int64"}:
        return ""
    if len(missing) < 5:
        return f"all but {', '.join(missing)}"
    return ", ".join(sorted(found))


class LogReasons:
    """Why ops are on the CPU, by type and by what the log says of them."""

    def __init__(
        self,
        facts: LogFacts,
        kernels: KernelChoice,
        accelerator: str | None,
        signatures: Mapping[str, OpSignature],
    ) -> None:
        self._facts = facts
        self._kernels = kernels
        self._target = accelerator or "GPU"
        self._signatures = signatures
        self._by_failure = {
            op_type: failure
            for failure in facts.failures
            for op_type, devices in failure.types
            if self._target not in devices and op_type != "_Arg"
        }

    def failure(self, failure: Failure) -> Reason:
        """The reason of a message of TensorFlow."""
        known = Known(self._registry, self._version, same=self._kernels.matches)
        return reason_of(failure, known)

    def reason(self, op_type: str, mark: tuple[str, str] | int | None) -> tuple[Reason, bool]:
        """The reason, and whether it is certain."""
        if isinstance(mark, tuple):
            other, device = mark
            return Reason(
                "colocated",
                f"TensorFlow says that it follows {other}, on {device}, and ignored its tf.device",
                f"look at the tf.device where {other} is made",
            ), True
        if isinstance(mark, int):
            failure = self._facts.failures[mark]
            own = dict(failure.types).get(op_type)
            if own is None or self._target in own:
                return self.failure(failure), True
        if op_type in self._by_failure:
            return self._by_message(op_type), True
        return self._by_table(op_type)

    def _by_table(self, op_type: str) -> tuple[Reason, bool]:
        registry = self._registry
        if not op_type:
            return self._unknown("the log doesn't say what type of operation it is"), False
        if registry is None or self._target != "GPU":
            return self._unknown(
                f"there is no table of {self._target} kernels to look it up in"
            ), False
        entries = usable(registry, op_type, "GPU")
        if not entries:
            if op_type not in self._signatures:
                return self._unknown(
                    f"{op_type} is no operation of TensorFlow {self._version}: a custom one, or "
                    "one that is gone"
                ), False
            other = "" if self._kernels.matches else self._of_another_release()
            return Reason(
                "no-kernel",
                f"TensorFlow {self._version} has no GPU kernel for {op_type}{other}",
                f"replace {op_type} by operations that have one, or leave it on the CPU",
            ), self._kernels.matches
        lists = self._listed(op_type)
        has = f"; in TensorFlow {self._version} it has GPU kernels for {lists}" if lists else ""
        if uses_variable(self._signatures.get(op_type)):
            return self._unknown(
                f"{op_type} runs where its variable is, and the log doesn't say what put that "
                f"there{has}"
            ), False
        if not lists:
            return self._unknown(
                f"{op_type} has a GPU kernel for every common dtype, so a tf.device or a "
                "colocation put it there, which a log doesn't tell"
            ), False
        return self._unknown(
            f"a log has no dtypes{has}; with another it stays on the CPU, and with one of those a "
            "tf.device or a colocation put it there"
        ), False

    def _by_message(self, op_type: str) -> Reason:
        """A message in the log lists the op type as one that only the CPU supports."""
        lists = self._listed(op_type)
        has = f"; in TensorFlow {self._version} it has for {lists}" if lists else ""
        return Reason(
            "dtype" if lists and self._kernels.matches else "no-kernel",
            f"a message in the log says that {op_type} has no {self._target} kernel there, "
            f"{'for its dtypes' if lists else 'at all or for its dtypes'}{has}",
            f"see whether another dtype has one, or leave {op_type} on the CPU",
        )

    def _listed(self, op_type: str) -> str:
        """``T: float16, float32`` for the dtypes that have a GPU kernel; "" where every one has."""
        registry = self._registry
        if registry is None:
            return ""
        takes: dict[str, set[str]] = {}
        for entry in usable(registry, op_type, "GPU"):
            if not entry.constraints:
                return ""
            for attr, dtypes in entry.constraints:
                takes.setdefault(attr, set()).update(d for d in dtypes if ":" not in d)
        phrases = {attr: _dtypes(found) for attr, found in takes.items()}
        return "; ".join(f"{attr}: {text}" for attr, text in phrases.items() if text)

    def _of_another_release(self) -> str:
        version = self._facts.version
        return f"; the log is of {version}, which may differ" if version else ""

    def _unknown(self, evidence: str) -> Reason:
        return Reason(
            "unknown",
            evidence,
            "watch it with pytest_tfdevice.watch(), which sees dtypes and the tf.device in force",
        )

    @property
    def _registry(self) -> KernelRegistry | None:
        """The table, where the devices are ones that TensorFlow itself has kernels for."""
        if self._target != "GPU" or any(
            plugin in name for name in self._facts.gpus.values() for plugin in PLUGINS
        ):
            return None
        return self._kernels.registry

    @property
    def _version(self) -> str:
        registry = self._kernels.registry
        return registry.version if registry is not None else ""
