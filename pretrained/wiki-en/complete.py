"""Mend events that an earlier version of `ssdvae extract` wrote without their open complements.

    python complete.py IN.jsonl.gz OUT.jsonl [EVENTS]

Today's `extract` writes "tried to escape" as `tried he escape` and "became president" as
`became he president`; the earlier version left the object empty. Where the complement is the next event
("tried he -", "escape he prison from"), it is filled in. Where it is lost ("became he -", "said he -"), the
event is left out: it says nothing, and a model that learns it suggests it. Fragments that were taken for
verbs ("-", "re" of "re-elected") are left out too. Of each document the first EVENTS are kept.
"""

import gzip
import json
import sys
from pathlib import Path

CLAUSE = frozenset(
    "aim allow attempt begin cause cease choose continue dare decide decline desire enable encourage expect "
    "fail force help hop hope intend learn let like love manage mean need opt permit persuade plan prefer "
    "pretend proceed refuse require seek set_out start stop struggle tend threaten try vow want wish".split()
)
"""Lemmas of verbs with an infinitive or a participle; some were lemmatized wrongly."""

LOST = frozenset(
    "age agree allege announce appear argue assert assume become believe call claim comment conclude confirm "
    "consider declare deem demand describe designate dub elect ensure entitle estimate explain fear feel "
    "find find_out get go_on happen hear imply indicate insist keep know light make name nickname notice note "
    "perceive point_out predict presume promise propose prove put realise realize refer remain remark render "
    "report reveal say schedule see seem show sound speculate state suggest suspect swear take task tell term "
    "think title turn_out understand use warn wonder".split()
)
"""Lemmas of verbs whose complement is a noun, an adjective or a clause of its own."""


def complete(events: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the events with the complements that can be told, without those that lost theirs."""
    found = []
    for event, after in zip(events, [*events[1:], {}], strict=True):
        verb, lemma = event["verb"], event.get("lemma") or event["verb"]
        if sum(letter.isalpha() for letter in verb) < 2 or verb in ("re", "co"):
            continue
        if (event.get("obj") is None and event.get("mod") is None) and lemma in CLAUSE | LOST:
            below = after.get("verb", "")
            open_form = below == after.get("lemma") or below.endswith("ing")
            if lemma in LOST or not open_form or after.get("subj") != event.get("subj"):
                continue
            event = {**event, "obj": below}
        found.append(event)
    return found


def main() -> None:
    source, target, *most = sys.argv[1:]
    last = int(most[0]) if most else None
    opened = gzip.open if source.endswith(".gz") else open
    with opened(source, "rt", encoding="utf-8") as lines, Path(target).open("w", encoding="utf-8") as out:
        for line in lines:
            document = json.loads(line)
            document["events"] = complete(document["events"])[:last]
            if document["events"]:
                out.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
