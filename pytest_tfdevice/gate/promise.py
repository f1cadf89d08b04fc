"""``--tfdevice-require``: a run that was promised GPUs and has fewer ends before any test."""

from __future__ import annotations

import textwrap

import pytest

from pytest_tfdevice.config import Require
from pytest_tfdevice.devices import DeviceReport, find_devices

WIDTH = 96


def keep(require: Require) -> None:
    """Looks for the GPUs, for which it imports TensorFlow.

    With pytest-xdist the controller looks, once for all: a worker may be given a part of the GPUs.

    Raises:
        pytest.UsageError: there are fewer; the message says why, and how to mend it.
    """
    why = broken(require, find_devices())
    if why is not None:
        raise pytest.UsageError(f"--tfdevice-require {require}: {why}")


def broken(require: Require, found: DeviceReport) -> str | None:
    """Why a promise is not kept; None where it is."""
    wanted = f"{require.count} GPU{'s' if require.count > 1 else ''}"
    if found.kind == "simulated" and not require.simulated:
        have = f"the {found.count} that it has {'is' if found.count == 1 else 'are'} simulated"
        return (
            f"this run was promised {wanted}, and {have}: leave --tfdevice-simulate out, or ask "
            f"for any:{require.count}"
        )
    if found.count >= require.count:
        return None
    lines = [f"this run was promised {wanted} and has {found.count or 'none'}"]
    if not found.count:
        lines += [f"because: {cause.what}" for cause in found.causes]
        lines += [f"mend it: {cause.remedy}" for cause in found.causes]
    elif found.visible is not None:
        lines.append(f"because: CUDA_VISIBLE_DEVICES is {found.visible!r}")
    shown = (
        textwrap.fill(
            line, WIDTH, subsequent_indent="           ", break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )  # fmt: skip
    return "\n  ".join(shown)
