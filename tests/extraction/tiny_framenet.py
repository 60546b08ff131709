"""A FrameNet of two frames in the real format, as a release has it."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

XMLNS = 'xmlns="http://framenet.icsi.berkeley.edu"'
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
FRAMES = {"Impact": 1, "Cause_harm": 2}

# lexical unit: number, frame, part of speech, sentences with [target], {subject}, (object) and <PP> marked
UNITS: dict[str, tuple[int, str, str, list[str]]] = {
    "hit.v": (
        11,
        "Impact",
        "V",
        ["{The cold wind} [hit] (the ferry) .", "{It} [hit] <against the old pier of stone> ."],
    ),
    "hit.v ": (12, "Cause_harm", "V", ["{The man} [hit] (his brother , a sailor) .", "[Hit] (him) !"]),
    "beat up.v": (13, "Cause_harm", "V", ["{She} [beat] (the thief) [up] ."]),
    "blow.n": (14, "Impact", "N", ["A [blow] fell ."]),
    "strike.v": (15, "Impact", "V", []),
}
# A text: sentences, each with the lexical unit that was annotated in it.
TEXT = [
    ("{Waves} [hit] (the pier) .", "hit.v"),
    ("{Rain} [hit] (it) .", "hit.v"),
    ("A [blow] fell .", "blow.n"),
]
MARKS = {"{": ("Ext", "NP"), "(": ("Obj", "NP"), "<": ("Dep", "PP[against]"), "[": ("Target", "")}
CLOSING = {"}": "{", ")": "(", ">": "<", "]": "["}


def write_framenet(root: Path) -> Path:
    (root / "frame").mkdir(parents=True)
    (root / "lu").mkdir()
    (root / "fulltext").mkdir()
    frames = "".join(f'<frame name="{name}" ID="{id}" mDate="x"/>' for name, id in FRAMES.items())
    units = "".join(
        f'<lu name="{name.strip()}" ID="{id}" status="Finished_Initial" frameID="{FRAMES[frame]}" '
        f'frameName="{frame}" hasAnnotation="{str(bool(sentences)).lower()}"/>'
        for name, (id, frame, _, sentences) in UNITS.items()
    )
    relation = (
        '<frameRelationType superFrameName="Parent" subFrameName="Child" name="Inheritance" ID="1">'
        '<frameRelation subID="2" supID="1" subFrameName="Cause_harm" superFrameName="Impact" ID="5"/>'
        "</frameRelationType>"
    )
    files = {
        "frameIndex.xml": f"<frameIndex {XMLNS}>{frames}</frameIndex>",
        "luIndex.xml": f"<luIndex {XMLNS}>{units}</luIndex>",
        "frRelation.xml": f"<frameRelations {XMLNS}>{relation}</frameRelations>",
        "fulltextIndex.xml": f'<fulltextIndex {XMLNS}><corpus name="Tiny" ID="1">'
        '<document name="story" description="story" ID="1"/><document name="lost" description="lost" ID="2"/>'
        "</corpus></fulltextIndex>",
        "fulltext/Tiny__story.xml": _text(),
        "semTypes.xml": f"<semTypes {XMLNS}></semTypes>",
        **{f"frame/{name}.xml": _frame(name, id) for name, id in FRAMES.items()},
    }
    for name, (id, frame, pos, sentences) in UNITS.items():
        # As in the real one, a unit without examples may have no file.
        if sentences:
            files[f"lu/lu{id}.xml"] = _unit(name.strip(), id, frame, pos, sentences)
    for path, content in files.items():
        (root / path).write_text(HEAD + content, encoding="utf-8")
    return root


def _frame(frame: str, id: int) -> str:
    units = "".join(
        f'<lexUnit status="Finished_Initial" POS="{pos}" name="{name.strip()}" ID="{number}" lemmaID="1">'
        f'<definition>x</definition><sentenceCount annotated="{len(sentences)}" total="{len(sentences)}"/>'
        f'<lexeme order="1" headword="false" breakBefore="false" POS="{pos}" name="x"/></lexUnit>'
        for name, (number, of, pos, sentences) in UNITS.items()
        if of == frame
    )
    element = (
        f'<FE bgColor="0" fgColor="F" coreType="Core" cBy="x" cDate="x" abbrev="A" name="Agent" ID="{id}0">'
        "<definition>x</definition></FE>"
    )
    inside = f"<definition>x</definition>{element}{units}"
    return f'<frame cBy="x" cDate="x" name="{frame}" ID="{id}" {XMLNS}>{inside}</frame>'


def _unit(name: str, id: int, frame: str, pos: str, sentences: list[str]) -> str:
    body = "".join(_sentence(number, text) for number, text in enumerate(sentences, start=100 * id))
    return (
        f'<lexUnit status="Finished_Initial" POS="{pos}" name="{name}" ID="{id}" frame="{frame}" '
        f'frameID="{FRAMES[frame]}" totalAnnotated="{len(sentences)}" {XMLNS}><header/>'
        f'<definition>x</definition><lexeme POS="{pos}" name="x"/><valences/>'
        f'<subCorpus name="all">{body}</subCorpus></lexUnit>'
    )


def _text() -> str:
    body = ""
    for number, (marked, name) in enumerate(TEXT, start=1):
        id, frame, _, _ = UNITS[name]
        unit = f' luID="{id}" luName="{name}" frameID="{FRAMES[frame]}" frameName="{frame}"'
        body += _sentence(9000 + number, marked, unit)
    return f"<fullTextAnnotation {XMLNS}><header/>{body}</fullTextAnnotation>"


def _sentence(id: int, marked: str, unit: str = "") -> str:
    text = ""
    layers: dict[str, list[str]] = {"Target": [], "FE": [], "GF": [], "PT": []}
    begun = {}
    for letter in marked:
        if letter in MARKS:
            begun[letter] = len(text)
        elif letter in CLOSING:
            mark = CLOSING[letter]
            place = f'start="{begun[mark]}" end="{len(text) - 1}"'
            function, kind = MARKS[mark]
            if function == "Target":
                layers["Target"].append(f'<label {place} name="Target" cBy="x"/>')
            else:
                layers["FE"].append(f'<label {place} name="{function}" feID="10" cBy="x"/>')
                layers["GF"].append(f'<label {place} name="{function}"/>')
                layers["PT"].append(f'<label {place} name="{kind}"/>')
        else:
            text += letter
    body = "".join(
        f'<layer rank="1" name="{name}">{"".join(labels)}</layer>' for name, labels in layers.items()
    )
    return (
        f'<sentence sentNo="0" aPos="{id}" ID="{id}"><text>{escape(text)}</text>'
        f'<annotationSet cDate="x" status="UNANN" ID="{id}1"><layer rank="1" name="PENN"/></annotationSet>'
        f'<annotationSet cDate="x" status="MANUAL"{unit} ID="{id}2">{body}</annotationSet></sentence>'
    )
