"""What belongs to a draft beside its text: images, the marks of pastes, and a draft that comes back."""

from __future__ import annotations

from tenuto.tui.complete.history import Extras
from tenuto.tui.complete.paste import mark_at
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.history import remember
from tenuto.tui.machine.intents import DraftRestored, ImageAttached, ImageDetached, ImageRefused, UnfoldPaste

WHOLE_CHARACTERS = 20_000
"""Up to so many characters a text to be changed stands in the editor as it is, and not as the mark of a paste."""


@on(ImageAttached)
def attach_image(change: Change, intent: ImageAttached) -> None:
    """An image goes along with the draft."""
    state = change.state
    state.draft.images += (intent.image,)
    state.draft.changed_at = change.now
    change.panel()


@on(ImageDetached)
def detach_image(change: Change, intent: ImageDetached) -> None:
    """It does not, after all."""
    images = list(change.state.draft.images)
    if -len(images) <= intent.index < len(images):
        del images[intent.index]
        change.state.draft.images = tuple(images)
        change.panel()


@on(ImageRefused)
def refuse_image(change: Change, intent: ImageRefused) -> None:
    """Say why there is no image."""
    change.toast(intent.reason, "warning")


@on(UnfoldPaste)
def unfold_paste(change: Change, _intent: UnfoldPaste) -> None:
    """Put a paste into the draft as text; undo folds it again."""
    state = change.state
    draft = state.draft
    mark = mark_at(draft.text, draft.cursor)
    if mark is None:
        return
    start, end = mark
    text = state.pastes.expand(draft.text[start:end])
    if text == draft.text[start:end]:
        return
    if len(text) > WHOLE_CHARACTERS:
        key = state.keys.labels("editor") or "your editor"
        change.toast(f"Too long to expand here; {key} opens it in your editor")
        return
    change.set_draft(f"{draft.text[:start]}{text}{draft.text[end:]}", start + len(text))


@on(DraftRestored)
def restore_draft(change: Change, intent: DraftRestored) -> None:
    """Bring a draft back; when something has been typed, or stashed, meanwhile, it is one Up away."""
    state = change.state
    is_second = bool(state.ladder.stash)
    if intent.stash and is_second:
        remember(change, intent.stash, intent.stash_extras)
    elif intent.stash:
        state.ladder.stash = _shown(change, intent.stash, intent.stash_extras)
        state.ladder.stashed_images = intent.stash_extras.images
    if not intent.text and not intent.extras.images:
        if intent.stash and not is_second:
            key = state.keys.label("escape")
            change.toast(f"The draft that you stashed ({intent.at}) is there: {key} {key} restores it")
        return
    if not state.draft.empty:
        remember(change, intent.text, intent.extras)
        change.toast(f"An unsent draft ({intent.at}) is in the history: press Up")
        return
    state.draft.images = intent.extras.images
    change.set_draft(_shown(change, intent.text, intent.extras))
    change.toast(f"Your unsent draft ({intent.at}) is back")


def _shown(change: Change, text: str, extras: Extras) -> str:
    pastes = change.state.pastes
    if extras.folds:
        return pastes.fold_at(text, extras.folds)
    return pastes.fold(text) if len(text) > WHOLE_CHARACTERS else text
