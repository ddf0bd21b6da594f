"""What both screens do alike: one place carries out every effect."""

from __future__ import annotations

from typing import get_args

from tenuto.tui.state.effects import EffectBase, ScreenEffect, TranscriptEffect


def test_every_effect_is_one_that_a_screen_carries_out():
    """`Screen.carry_out` ends in `assert_never`: what is in the union has a case, or the type checker fails."""
    assert set(EffectBase.__subclasses__()) <= set(get_args(ScreenEffect))
    assert set(get_args(TranscriptEffect)) <= set(get_args(ScreenEffect))
