"""The names of the slots of an event: the head first, of which a frame is a class, then its arguments."""

from __future__ import annotations

from collections.abc import Iterable

from ssdvae.errors import Malformed, shorten

Slots = tuple[str, ...]

SLOTS: Slots = ("verb", "subj", "obj", "mod")
"""Who did what to whom: what the slots are called where nobody says otherwise."""

TAKEN = (
    *("id", "events", "frame", "probability", "lemma", "origin"),
    *("gold", "observed", "runner_up", "runner_up_probability", "alternatives", "attention"),
)
"""What records have under these names is no slot: those of files, and what `infer` adds to them."""


def checked_slots(names: Iterable[str]) -> Slots:
    """These names, if events can have such slots; ``Malformed`` if not."""
    slots = tuple(names)
    if not slots:
        raise Malformed("no slots", "one at least, the head of an event")
    for place, name in enumerate(slots):
        if name.split() != [name] or "," in name:
            raise Malformed(f"a slot {shorten(name)}", "a name without spaces and commas")
        if name.lower() in TAKEN:
            raise Malformed(f"a slot {name}", f"another name than {', '.join(TAKEN)}")
        if name.lower() in [other.lower() for other in slots[:place]]:
            raise Malformed(f"the slot {name} twice", "each name once, in upper or lower case")
    return slots


def slots_of_text(text: str) -> Slots:
    """From names with commas between."""
    return checked_slots(name.strip() for name in text.split(","))
