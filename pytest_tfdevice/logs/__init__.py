"""What a log from elsewhere shows on the CPU, and why: ``pytest-tfdevice explain LOG``.

``facts`` is what a line of a log tells beside placements, ``reasons`` what follows from that for an
op, ``kernels`` the table of the release that wrote it, and ``explain`` puts them together.
"""
