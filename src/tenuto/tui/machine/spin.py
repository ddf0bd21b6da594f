"""The spinner's layers: what goes on, and under it what went on before and will show again."""

from __future__ import annotations

from tenuto.tui.machine.change import Change
from tenuto.tui.machine.state import SpinnerLayer, TaskKind


def set_layer(change: Change, kind: TaskKind, label: str) -> None:
    """Begin a layer now. The layers below keep their label and time."""
    change.state.spinner.layers[kind] = SpinnerLayer(kind, label, change.now)
    change.status()


def set_label(change: Change, kind: TaskKind, label: str, detail: str = "") -> None:
    """Say what a layer does now; it keeps its time. Does nothing when the layer is not there."""
    layer = change.state.spinner.layers.get(kind)
    if layer is not None and (layer.label, layer.detail) != (label, detail):
        layer.label, layer.detail = label, detail
        change.status()


def restart_clock(change: Change, kind: TaskKind) -> None:
    """Count a layer's seconds from now on: the task goes on with something else. Does nothing without the layer."""
    layer = change.state.spinner.layers.get(kind)
    if layer is not None:
        layer.since = change.now
        change.status()


def drop_layer(change: Change, kind: TaskKind) -> None:
    """End a layer; what was under it shows again."""
    if change.state.spinner.layers.pop(kind, None) is not None:
        change.status()
