"""Why an op isn't on the device: a placement → exactly one reason, with evidence and a mend.

The order of the questions is the order in which TensorFlow decides.  A ``tf.device`` for another
device is obeyed before any kernel is looked for; a device that isn't there can't be had whatever
the kernels; then the placer asks for kernels (``op_kernel.cc``, ``FindKernelRegistration``: those
of the device's own type first, then the DEFAULT ones), joins colocated ops into groups that must
share a device (``colocation_graph.cc``), and optimisers may move what was placed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from pytest_tfdevice.classify import is_value_dtype, is_variable_handle, uses_variable
from pytest_tfdevice.kernels.match import (
    Kernels,
    all_on_host,
    chosen,
    in_name_only,
    offered,
    serving,
    usable,
)
from pytest_tfdevice.kernels.table import KernelEntry
from pytest_tfdevice.model import Device, DeviceScope, DeviceSpec, OpSignature, Placement, Record
from pytest_tfdevice.reason import Reason

_LIKED_DTYPES = ("float32", "int64", "float16", "bfloat16", "float64")
"""What to cast to, by preference, where a kernel takes it."""


def explain(
    placement: Placement, record: Record, kernels: Kernels | None, target: DeviceSpec
) -> Reason:
    """Says why ``placement`` isn't on ``target``.

    For an op that is on it in name only the reason is ``host-memory``.

    Raises:
        ValueError: the op is on ``target``, with its tensors in that device's memory.
    """
    return Explainer(record, kernels, target).reason(placement)


class Explainer:
    """Reasons for one record, kernels and target; what is looked up repeatedly is kept."""

    def __init__(self, record: Record, kernels: Kernels | None, target: DeviceSpec) -> None:
        self.record = record
        self.kernels = kernels
        self.target = target
        self._by_name: dict[str, Placement] = {}
        self._calls: dict[str, DeviceScope] = {}
        self._handles: list[Placement] = []
        self._group: dict[str, list[str]] = {}
        for placement in record.placements:
            self._by_name.setdefault(placement.op, placement)
            if placement.origin == "eager" and placement.request is not None:
                self._calls.setdefault(placement.op, placement.request)
            if is_variable_handle(self._signature(placement)):
                self._handles.append(placement)
            for name in placement.colocated_with:
                self._group.setdefault(name, []).append(placement.op)

    def reason(self, placement: Placement) -> Reason:
        """See :func:`explain`."""
        if placement.device is not None and self.target.matches(placement.device):
            if in_name_only(placement, self._signature(placement), self.kernels):
                return self._host_memory(placement)
            raise ValueError(f"{placement.op} is on {placement.device}, which is {self.target}")
        return self._reason(placement)

    def _reason(self, placement: Placement) -> Reason:
        return (
            self._no_device_known(placement)
            or self._requested(placement)
            or self._absent(placement)
            or self._unit(placement)
            or self._moved(placement)
            or self._colocated_by_request(placement)
            or self._no_kernel(placement)
            or self._colocated_by_kernel(placement)
            or self._follows_variable(placement)
            or self._host_kernel(placement)
            or self._unknown(placement)
        )

    # The questions, in order.  Each returns None for "that isn't why".

    def _no_device_known(self, placement: Placement) -> Reason | None:
        if placement.device is not None:
            return None
        return Reason(
            "unknown",
            "TensorFlow gives no way to know on which device it ran",
            "switch the placement log on for this test, or put it in allow= if that is meant",
        )

    def _requested(self, placement: Placement) -> Reason | None:
        scope, inherited = placement.request, ""
        if scope is None or scope.spec.type is None:
            scope = self._request_of_call(placement)
            inherited = f" when {placement.function} was called"
        if scope is None or scope.spec.type is None or placement.device is None:
            return None
        if not scope.spec.matches(placement.device) or self._wants_target(scope.spec):
            return None
        if self._copied(placement, scope):
            return None
        if placement.is_unit:
            return None  # `_unit` names the request
        who = "TensorFlow's or Keras' own code" if scope.by_framework else "tf.device"
        at = _at(scope, placement)
        return Reason(
            "requested-elsewhere",
            f"{who} asked for {scope.spec}{inherited}{at}",
            f'allow="{_key(placement)}" if it may stay: the code that asked is not the test\'s own'
            if scope.by_framework
            else f"take it out of that tf.device{at}, or ask for {self.target} there",
        )

    def _copied(self, placement: Placement, scope: DeviceScope) -> bool:
        """True where ``colocate_with`` wrote another op's request on this one, too."""
        if scope.source is not None:
            return False
        tied = (self._by_name.get(name) for name in placement.colocated_with)
        return any(
            partner is not None
            and partner.request is not None
            and partner.request.spec == scope.spec
            and placement.op not in partner.colocated_with
            for partner in tied
        )

    def _absent(self, placement: Placement) -> Reason | None:
        present = self._present()
        if present is None:
            return None
        wanted = self._unmet(placement, present)
        if wanted is None:
            return None
        same_type = [device for device in present if device.type == self.target.type]
        if not same_type:
            have = f"TensorFlow has no {self.target.type}, only {_list(present)}"
            mend = "see what is missing with `pytest-tfdevice devices`, or simulate a GPU with "
            return Reason(
                "no-gpu", f"{wanted} was wanted{_at(placement.request)}; {have}", mend + _SIMULATE
            )
        return Reason(
            "no-gpu",
            f"{wanted} was wanted{_at(placement.request)}; there is only {_list(same_type)}",
            f"ask for one that is there, run where {wanted} is, or simulate more with {_SIMULATE}",
        )

    def _unmet(self, placement: Placement, present: Iterable[Device]) -> DeviceSpec | None:
        """The request, or else the target, that none of the devices present can meet."""
        wishes = [self.target]
        if placement.request is not None and placement.request.spec.type == self.target.type:
            wishes.insert(0, placement.request.spec)
        for spec in wishes:
            if not any(spec.matches(device) for device in present):
                return spec
        return None

    def _unit(self, placement: Placement) -> Reason | None:
        if not placement.is_unit:
            return None
        scope = placement.request
        why = f"; tf.device asked for {scope.spec}{_at(scope)}" if scope is not None else ""
        return Reason(
            "xla",
            f"compiled function {placement.unit} of {placement.contents} operations was called "
            f"on {placement.device}{why}",
            f"call it under tf.device('{_name_of_one(self.target)}')",
        )

    def _moved(self, placement: Placement) -> Reason | None:
        before = placement.placed_on
        if before is None or not self.target.matches(before):
            return None
        return Reason(
            "moved",
            f"it was placed on {before}; an optimiser moved it to {placement.device}",
            "tf.config.optimizer.set_experimental_options({'pin_to_host_optimization': False}), "
            f'or allow=["{_key(placement)}"]: what is moved is small',
        )

    def _no_kernel(self, placement: Placement) -> Reason | None:
        if placement.type is None or self.kernels is None or self.target.type in {None, "CPU"}:
            return None
        entries = self._kernels_of(placement.type)
        version = f"TensorFlow {self.record.tensorflow}" if self.record.tensorflow else "TensorFlow"
        if not entries:
            return Reason(
                "no-kernel",
                f"{version} has no {self.target.type} kernel for {placement.type}",
                f"replace {placement.type} by operations that have one, or "
                f'allow="{placement.type}" if it may stay',
            )
        if serving(entries, placement):
            return None
        given = _list(f"{attr}={dtype}" for attr, dtype in placement.dtypes)
        takes = {attr: offered(entries, placement, attr) for attr, _ in placement.dtypes}
        wrong = [
            attr for attr, dtype in placement.dtypes if takes[attr] and dtype not in takes[attr]
        ]
        named = wrong or [attr for attr, dtypes in takes.items() if dtypes]
        lists = "; ".join(f"{attr}: {_list(takes[attr])}" for attr in named)
        return Reason(
            "dtype",
            f"{placement.type} has no {self.target.type} kernel for {given}; it has for {lists}",
            self._mend_dtype(placement, {attr: takes[attr] for attr in named}),
        )

    def _mend_dtype(self, placement: Placement, takes: Mapping[str, tuple[str, ...]]) -> str:
        dtypes = dict(placement.dtypes)
        wishes = []
        for attr, choices in takes.items():
            liked = [d for d in _LIKED_DTYPES if d in choices and d != dtypes[attr]]
            if is_value_dtype(dtypes[attr]):  # made an integer, it would lose its values
                liked = [d for d in liked if is_value_dtype(d)]
            # Integers stay integers where they can.
            if "int" in dtypes[attr] and "int64" in liked:
                liked.sort(key=lambda d: d != "int64")
            wishes.append((dtypes[attr], " or ".join((liked or list(choices))[:2])))
        texts = " and ".join(f"{have} to {want}" for have, want in wishes if want)
        if is_variable_handle(self._signature(placement)) or placement.type in _REF_VARIABLE_OPS:
            want = " and ".join(want for _, want in wishes if want)
            return f"make the variable {want}"
        return f'cast {texts} before it, or allow="{_key(placement)}" if it may stay'

    def _colocated_by_request(self, placement: Placement) -> Reason | None:
        """A member that was sent elsewhere decides for its group, whatever the kernels are."""
        return self._colocated(placement, self._requested)

    def _colocated_by_kernel(self, placement: Placement) -> Reason | None:
        return self._colocated(placement, lambda p: self._moved(p) or self._no_kernel(p))

    def _colocated(
        self, placement: Placement, own_reason: Callable[[Placement], Reason | None]
    ) -> Reason | None:
        """The nearest op of the colocation group that has such a reason, and the way to it.

        A group is tied together both ways: an update without a kernel takes its variable along.
        """
        paths: dict[str, tuple[Placement, ...]] = {placement.op: ()}
        queue = deque([placement])
        while queue:
            member = queue.popleft()
            for name in (*member.colocated_with, *self._group.get(member.op, ())):
                partner = self._by_name.get(name)
                if name in paths or partner is None or partner.device != placement.device:
                    continue
                paths[name] = (*paths[member.op], partner)
                cause = own_reason(partner)
                if cause is not None:
                    return _chained(paths[name], cause)
                queue.append(partner)
        return None

    def _follows_variable(self, placement: Placement) -> Reason | None:
        """Ops that take a variable's handle run where the variable is, without a constraint."""
        if self.kernels is None or not uses_variable(self._signature(placement)):
            return None
        for variable in self._handles:
            same_dtype = {d for _, d in variable.dtypes} & {d for _, d in placement.dtypes}
            if variable.device == placement.device and (same_dtype or not placement.dtypes):
                link = f"it runs where its variable is, such as {_title(variable)}"
                return _tied(link, self._reason(variable))
        return Reason(
            "colocated",
            f"it runs where its variable is: on {placement.device}, from before the test was "
            "watched",
            f"make the variable on {self.target}: look at the tf.device where it is made, and at "
            "its dtype",
        )

    def _host_kernel(self, placement: Placement) -> Reason | None:
        if self.target.type in {None, "CPU"} or not placement.dtypes:
            return None
        entry = chosen(placement, self.kernels, self.target.type or "")
        if entry is None or not all_on_host(entry, self._signature(placement)):
            return None
        return self._host_memory(placement)

    def _host_memory(self, placement: Placement) -> Reason:
        given = ", ".join(f"{attr}={dtype}" for attr, dtype in placement.dtypes)
        return Reason(
            "host-memory",
            f"the {self.target.type} kernel of {placement.type} keeps every tensor in host memory"
            + (f" for {given}" if given else ""),
            "compute it in float32 (int32 is TensorFlow's type for shapes and stays on the host), "
            f'or allow="{_key(placement)}"',
        )

    def _unknown(self, placement: Placement) -> Reason:
        return Reason("unknown", self._missing(placement), _MEND_UNKNOWN)

    def _missing(self, placement: Placement) -> str:
        """What would be needed to tell."""
        version = self.record.tensorflow
        if placement.type is None:
            return "the log names no op type: this TensorFlow printed none, or it is a function"
        if self.target.type == "CPU":
            return (
                f"nothing asked for {self.target}; TensorFlow prefers a GPU where it has a kernel"
            )
        if self.kernels is None:
            of = f" of TensorFlow {version}" if version else ""
            return f"there is no table of the {self.target.type} kernels{of} to look it up in"
        if not placement.dtypes and any(e.constraints for e in self._kernels_of(placement.type)):
            return f"its dtypes are not in the record, and {placement.type} has kernels for some"
        if self._present() is None:
            return "it has a kernel; the log doesn't say which devices the program had"
        if placement.device is not None and placement.device.type == self.target.type:
            return f"nothing asked for {self.target}; TensorFlow takes the first {self.target.type}"
        return (
            f"{placement.type} has a {self.target.type} kernel for its dtypes, and nothing on "
            "record asked for another device or tied it to one: an input that was there may have"
        )

    # What the record and the kernels say.

    def _signature(self, placement: Placement) -> OpSignature | None:
        return self.record.signatures.get(placement.type or "")

    def _kernels_of(self, op: str) -> tuple[KernelEntry, ...]:
        if self.kernels is None or self.target.type is None:
            return ()
        return usable(self.kernels, op, self.target.type)

    def _present(self) -> tuple[Device, ...] | None:
        """The devices that TensorFlow had; None where the record doesn't say (a log)."""
        if not self.record.devices:
            return None
        return tuple(info.device for info in self.record.devices)

    def _wants_target(self, spec: DeviceSpec) -> bool:
        """True where something that ``spec`` asks for could be the target."""
        pairs = (
            (spec.job, self.target.job),
            (spec.replica, self.target.replica),
            (spec.task, self.target.task),
            (spec.type, self.target.type),
            (spec.index, self.target.index),
        )
        return all(a is None or b is None or a == b for a, b in pairs)

    def _request_of_call(self, placement: Placement) -> DeviceScope | None:
        """A function's ops that ask for nothing inherit what the call of the function asked for."""
        if placement.function is None or placement.origin not in {"function", "compiled"}:
            return None
        return self._calls.get(placement.function)


_SIMULATE = "--tfdevice-simulate"
_MEND_UNKNOWN = "open tf.device for it to see whether it can be there, or put it in allow="
_REF_VARIABLE_OPS = frozenset({"Variable", "VariableV2", "Assign", "AssignAdd", "AssignSub"})
"""The variables of TensorFlow 1 and what writes to them: their dtype is the variable's."""


def _tied(link: str, cause: Reason) -> Reason:
    return Reason("colocated", f"{link}, there because: {cause.evidence}", cause.mend, cause)


def _chained(path: Iterable[Placement], cause: Reason) -> Reason:
    """``path`` leads to the op that has ``cause``."""
    for member in reversed(tuple(path)):
        cause = _tied(f"tied by colocation to {_title(member)}", cause)
    return cause


def _at(scope: DeviceScope | None, placement: Placement | None = None) -> str:
    if scope is not None and scope.source is not None:
        return f" at {scope.source}"
    if placement is not None and placement.source is not None:
        return f" for the operation at {placement.source}"
    return ""


def _title(placement: Placement) -> str:
    return f"{placement.op} ({placement.type})" if placement.type else placement.op


def _key(placement: Placement) -> str:
    """The shortest pattern that allows the op."""
    return placement.type or f"name:{placement.op}"


def _name_of_one(target: DeviceSpec) -> str:
    """A device of ``target`` for ``tf.device``, which wants a number."""
    text = str(target)
    return text if target.type is None or target.index is not None else f"{text}:0"


def _list(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items)
