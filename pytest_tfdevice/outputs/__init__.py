"""What a run leaves outside the terminal: report files, and what GitHub Actions shows.

``build`` makes a test's report where the test runs; ``parcel`` brings it to where the session is
run; ``gathered`` puts the run together there; ``files`` and ``github`` write.  ``hooks`` ties them
to pytest, and is imported only where there is something to leave.
"""
