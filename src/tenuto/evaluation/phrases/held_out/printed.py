"""Held out: what commands print (see the package)."""

from __future__ import annotations

from tenuto.evaluation.phrases.shape import Printed

PRINTED = Printed(
    log_lines=(
        "ws handshake with {x} timed out after three tries",
        "WARN dropping event {x}: schema mismatch",
        "message {x} went to the dead letter queue",
        "lock is held by {x}, giving way",
        "HTTP 502 from {x}",
        "consumer lag alarm raised for {x}",
    ),
    errors=(
        "KeyError: '{a}' while rendering row {n}",
        "FAILED tests/test_{a}.py::test_total[{n}] - assert {n} == {m}",
        "./{a}.go:{n}:{m}: undefined: newClient",
        "fatal error: {a}/config_{n}.h: No such file or directory",
        "java.lang.IllegalStateException: {a} already closed (attempt {n})",
        "curl: (7) Failed to connect to {a} port {n}: Connection refused",
        "thread '{a}' panicked at src/main.rs:{n}:{m}: called `Option::unwrap()` on a `None` value",
        "src/{a}.ts({n},{m}): error TS2345: Argument of type 'string' is not assignable to parameter of type 'Id'.",
    ),
)
