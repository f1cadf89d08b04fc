"""What each reason, and each other finding, means: for readers of a report who have no manual."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuleText:
    """``short`` is a sentence; ``help`` says how to mend it."""

    short: str
    help: str


REASONS: dict[str, RuleText] = {
    "requested-elsewhere": RuleText(
        "A tf.device asked for another device.",
        "Take the operation out of that tf.device, or ask for the device that is meant there.",
    ),
    "no-kernel": RuleText(
        "This TensorFlow has no GPU kernel for the operation.",
        "Replace it by operations that have one, or excuse it with allow= if it may stay.",
    ),
    "dtype": RuleText(
        "The operation has a GPU kernel, but none for these dtypes.",
        "Cast to a dtype that has one: the message lists them.",
    ),
    "colocated": RuleText(
        "The operation is tied to another one, which is elsewhere for a reason of its own.",
        "Mend that one: the message names it and its reason.",
    ),
    "host-memory": RuleText(
        "The operation's GPU kernel keeps every tensor in host memory.",
        "It is on the GPU in name only; what strict= forbids, a plain rule lets pass.",
    ),
    "no-gpu": RuleText(
        "The GPU that was asked for isn't there.",
        "Ask for a GPU that the machine has, or run on one that has more.",
    ),
    "moved": RuleText(
        "An optimiser of TensorFlow moved the operation after it was placed.",
        "The message says what moves it, and how to keep it from that.",
    ),
    "xla": RuleText(
        "The operation is a compiled (XLA) function, which is on one device as a whole.",
        "Call it where the device that is meant is in force.",
    ),
    "unknown": RuleText(
        "Why the operation is elsewhere can't be told.",
        "The message says what is missing to tell.",
    ),
}

OTHER_RULES: dict[str, RuleText] = {
    "memory-limit": RuleText(
        "A test took more GPU memory, or left more behind, than allowed.",
        "Take less, or raise the limit of gpu_memory if that is meant.",
    ),
    "transfer-limit": RuleText(
        "More tensors crossed between host and GPU than allowed.",
        "Keep them on the GPU, or raise the limit of gpu_transfers if that is meant.",
    ),
    "not-seen": RuleText(
        "An operation that a marker names was not seen on the device.",
        "Correct the pattern, or find out why the operation is not there.",
    ),
    "baseline": RuleText(
        "Operations left their device since the baseline was recorded.",
        "Mend it, or record it with --tfdevice-baseline update if it is meant.",
    ),
    "not-judged": RuleText(
        "A marked test could not be judged.",
        "A test of which nothing can be said never passes: the message says what was missing.",
    ),
    "not-placed": RuleText(
        "TensorFlow could not place an operation where it was asked to.",
        "The message says which, and why.",
    ),
}

RULES: dict[str, RuleText] = {**REASONS, **OTHER_RULES}
