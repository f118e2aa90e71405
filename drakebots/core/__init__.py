"""Tools of every room; core knows nothing of robots and does not import Drake.

    errors    the exceptions a user can cause, one line each
    checks    rules for the values of a problem's fields
    units     units to SI, and the units of scaled computation
    files     files written whole or not at all; strict reading of YAML
    run       the loop of all long work: progress, Ctrl-C, time limit, verdict
    threads   the threads of the linear algebra libraries; other processes
    lazy      the faces of packages

Its modules are small and stand for themselves, so they are imported by name:
`from drakebots.core.checks import check, positive`.
"""
