import pytest

from tenuto.compaction.summary.prompts import (
    FIRST,
    TURN_PREFIX,
    UPDATE,
    Prompts,
    assemble,
    prompts_from,
    summariser_system,
)
from tenuto.config.settings import CompactionSettings, PromptSettings

HEADINGS = [
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "- [x]",
    "### In Progress",
    "- [ ]",
    "### Blocked",
    "## Key Decisions",
    "- **[decision]**",
    "## Next Steps",
    "1. ",
    "## Critical Context",
]


@pytest.mark.parametrize("prompt", [FIRST, UPDATE])
def test_the_headings_stand_in_their_order(prompt):
    places = [prompt.index(heading) for heading in HEADINGS]
    assert places == sorted(places)


def test_a_turn_prefix_has_its_own_headings():
    places = [TURN_PREFIX.index(h) for h in ("## Original Request", "## Progress So Far", "## Context Needed")]
    assert places == sorted(places)


def test_the_order_is_conversation_previous_summary_instructions_focus():
    prompt = assemble("TALK", "INSTRUCTIONS", previous_summary="EARLIER", focus="the API names")
    assert prompt == (
        "<conversation>\nTALK\n</conversation>\n\n"
        "<previous-summary>\nEARLIER\n</previous-summary>\n\n"
        "INSTRUCTIONS\n\n"
        "Additional focus: the API names"
    )
    assert assemble("TALK", "INSTRUCTIONS") == "<conversation>\nTALK\n</conversation>\n\nINSTRUCTIONS"


def test_settings_replace_single_prompts():
    own = PromptSettings(first="my own", summary_prefix="before entry {seq}", check="ask so")
    prompts = prompts_from(CompactionSettings(prompts=own))
    assert (prompts.first, prompts.summary_prefix) == ("my own", "before entry {seq}")
    assert prompts.check == "ask so"
    assert prompts.update == Prompts().update
    assert prompts_from(CompactionSettings()) == Prompts()


def test_what_is_left_out_is_not_asked_about_where_that_is_switched_off():
    prompts = prompts_from(CompactionSettings(check=False, prompts=PromptSettings(check="ask so")))
    assert prompts.check == ""


def test_r035_r041_the_prompts_ask_for_what_was_cancelled_and_give_quoted_text_no_orders():
    prompts = Prompts()
    assert "cancelled" in prompts.first
    assert "cancelled" in prompts.update
    assert "quoted material" in prompts.system
    assert "do not copy whole files" in prompts.first.lower()


def test_the_project_instructions_reach_the_summariser():
    assert "ALWAYS-TABS" in summariser_system(Prompts(), "ALWAYS-TABS")
    assert summariser_system(Prompts(), "") == Prompts().system
