"""Constructions that a first version got wrong, in both schools of parsing, as in ``trees.py``."""

from __future__ import annotations

# name: (Universal Dependencies, ClearNLP as English models of spaCy have it, the events)
MENDED: dict[str, tuple[str, str, list[str]]] = {
    # Relative clauses without a pronoun.
    "relative clause without a pronoun": (
        "data/data/NOUN/4/nsubj you/you/PRON/3/nsubj used/use/VERB/1/acl:relcl vanished/vanish/VERB/0/root",
        "data/data/NOUN/4/nsubj you/you/PRON/3/nsubj used/use/VERB/1/relcl vanished/vanish/VERB/0/ROOT",
        ["used you data None", "vanished data None None"],
    ),
    "relative clause that ends in a preposition": (
        "house/house/NOUN/5/nsubj he/he/PRON/3/nsubj lived/live/VERB/1/acl:relcl in/in/ADP/3/obl "
        "burned/burn/VERB/0/root",
        "house/house/NOUN/5/nsubj he/he/PRON/3/nsubj lived/live/VERB/1/relcl in/in/ADP/3/prep "
        "burned/burn/VERB/0/ROOT",
        ["lived he house in", "burned house None None"],
    ),
    "relative clause with a receiver": (
        "lessons/lesson/NOUN/5/nsubj she/she/PRON/3/nsubj taught/teach/VERB/1/acl:relcl me/I/PRON/3/iobj "
        "ended/end/VERB/0/root",
        "lessons/lesson/NOUN/5/nsubj she/she/PRON/3/nsubj taught/teach/VERB/1/relcl me/I/PRON/3/dative "
        "ended/end/VERB/0/ROOT",
        ["taught she lessons None", "ended lessons None None"],
    ),
    "relative clause whose infinitive lacks the noun": (
        "things/thing/NOUN/6/nsubj I/I/PRON/3/nsubj want/want/VERB/1/acl:relcl to/to/PART/5/mark "
        "do/do/VERB/3/xcomp waited/wait/VERB/0/root",
        "things/thing/NOUN/6/nsubj I/I/PRON/3/nsubj want/want/VERB/1/relcl to/to/PART/5/aux "
        "do/do/VERB/3/xcomp waited/wait/VERB/0/ROOT",
        ["want i do None", "do i things None", "waited things None None"],
    ),
    "relative clause whose infinitive has its object": (
        "food/food/NOUN/7/nsubj I/I/PRON/3/nsubj need/need/VERB/1/acl:relcl to/to/PART/5/mark "
        "keep/keep/VERB/3/xcomp dogs/dog/NOUN/5/obj vanished/vanish/VERB/0/root",
        "food/food/NOUN/7/nsubj I/I/PRON/3/nsubj need/need/VERB/1/relcl to/to/PART/5/aux "
        "keep/keep/VERB/3/xcomp dogs/dog/NOUN/5/dobj vanished/vanish/VERB/0/ROOT",
        ["need i food None", "keep i dogs None", "vanished food None None"],
    ),
    "a day on which something happened is no object": (
        "day/day/NOUN/4/nsubj she/she/PRON/3/nsubj left/leave/VERB/1/acl:relcl came/come/VERB/0/root",
        "day/day/NOUN/4/nsubj she/she/PRON/3/nsubj left/leave/VERB/1/relcl came/come/VERB/0/ROOT",
        ["left she None None", "came day None None"],
    ),
    "nor is a house where something happened": (
        "houses/house/NOUN/5/nsubj where/where/ADV/4/advmod she/she/PRON/4/nsubj sang/sing/VERB/1/acl:relcl "
        "burned/burn/VERB/0/root",
        "houses/house/NOUN/5/nsubj where/where/ADV/4/advmod she/she/PRON/4/nsubj sang/sing/VERB/1/relcl "
        "burned/burn/VERB/0/ROOT",
        ["sang she None None", "burned houses None None"],
    ),
    "relative clause on the subject of a clause below": (
        "men/man/NOUN/5/nsubj I/I/PRON/3/nsubj think/think/VERB/1/acl:relcl left/leave/VERB/3/ccomp "
        "came/come/VERB/0/root",
        "men/man/NOUN/5/nsubj I/I/PRON/3/nsubj think/think/VERB/1/relcl left/leave/VERB/3/ccomp "
        "came/come/VERB/0/ROOT",
        ["think i None None", "left men None None", "came men None None"],
    ),
    "a passive in a relative clause lacks nothing": (
        "lab/lab/NOUN/5/nsubj bombs/bomb/NOUN/4/nsubj:pass were/be/AUX/4/aux:pass "
        "made/make/VERB/1/acl:relcl burned/burn/VERB/0/root",
        "lab/lab/NOUN/5/nsubj bombs/bomb/NOUN/4/nsubjpass were/be/AUX/4/auxpass "
        "made/make/VERB/1/relcl burned/burn/VERB/0/ROOT",
        ["made bombs None None", "burned lab None None"],
    ),
    "a relative clause about a whole clause": (
        "He/he/PRON/2/nsubj left/leave/VERB/0/root which/which/PRON/4/nsubj "
        "surprised/surprise/VERB/2/advcl:relcl "
        "us/we/PRON/4/obj",
        "He/he/PRON/2/nsubj left/leave/VERB/0/ROOT which/which/PRON/4/nsubj surprised/surprise/VERB/2/relcl "
        "us/we/PRON/4/dobj",
        ["left he None None", "surprised which us None"],
    ),
    # Participles and infinitives that share their subject.
    "adverbial participle": (
        "They/they/PRON/2/nsubj fired/fire/VERB/0/root killing/kill/VERB/2/advcl ten/ten/NUM/3/obj",
        "They/they/PRON/2/nsubj fired/fire/VERB/0/ROOT killing/kill/VERB/2/advcl ten/ten/NUM/3/dobj",
        ["fired they None None", "killing they ten None"],
    ),
    "adverbial participle after a preposition": (
        "Before/before/SCONJ/2/mark leaving/leave/VERB/4/advcl she/she/PRON/4/nsubj called/call/VERB/0/root",
        "Before/before/ADP/4/prep leaving/leave/VERB/1/pcomp she/she/PRON/4/nsubj called/call/VERB/0/ROOT",
        ["leaving she None None", "called she None None"],
    ),
    "a participle of comparison shares no subject": (
        "He/he/PRON/2/nsubj left/leave/VERB/0/root as/as/SCONJ/4/mark expected/expect/VERB/2/advcl",
        "He/he/PRON/2/nsubj left/leave/VERB/0/ROOT as/as/SCONJ/4/mark expected/expect/VERB/2/advcl",
        ["left he None None", "expected None None None"],
    ),
    "a purpose": (
        "He/he/PRON/2/nsubj came/come/VERB/0/root to/to/PART/4/mark help/help/VERB/2/advcl us/we/PRON/4/obj",
        "He/he/PRON/2/nsubj came/come/VERB/0/ROOT to/to/PART/4/aux help/help/VERB/2/advcl us/we/PRON/4/dobj",
        ["came he None None", "help he us None"],
    ),
    "the purpose of a passive": (
        "Talks/talk/NOUN/3/nsubj:pass were/be/AUX/3/aux:pass held/hold/VERB/0/root to/to/PART/5/mark "
        "end/end/VERB/3/advcl it/it/PRON/5/obj",
        "Talks/talk/NOUN/3/nsubjpass were/be/AUX/3/auxpass held/hold/VERB/0/ROOT to/to/PART/5/aux "
        "end/end/VERB/3/advcl it/it/PRON/5/dobj",
        ["held talks None None", "end None it None"],
    ),
    "an infinitive at an adjective": (
        "He/he/PRON/3/nsubj is/be/AUX/3/cop ready/ready/ADJ/0/root to/to/PART/5/mark "
        "leave/leave/VERB/3/xcomp",
        "He/he/PRON/2/nsubj is/be/AUX/0/ROOT ready/ready/ADJ/2/acomp to/to/PART/5/aux "
        "leave/leave/VERB/3/xcomp",
        ["leave he None None"],
    ),
    "what is easy to please does not please": (
        "Dogs/dog/NOUN/3/nsubj are/be/AUX/3/cop easy/easy/ADJ/0/root to/to/PART/5/mark "
        "please/please/VERB/3/xcomp",
        "Dogs/dog/NOUN/2/nsubj are/be/AUX/0/ROOT easy/easy/ADJ/2/acomp to/to/PART/5/aux "
        "please/please/VERB/3/xcomp",
        ["please None None None"],
    ),
    "how to": (
        "She/she/PRON/2/nsubj knows/know/VERB/0/root how/how/ADV/5/advmod to/to/PART/5/mark "
        "win/win/VERB/2/ccomp",
        "She/she/PRON/2/nsubj knows/know/VERB/0/ROOT how/how/ADV/5/advmod to/to/PART/5/aux "
        "win/win/VERB/2/xcomp",
        ["knows she win None", "win she None None"],
    ),
    "a participle that says how it was done": (
        "It/it/PRON/3/nsubj:pass was/be/AUX/3/aux:pass built/build/VERB/0/root using/use/VERB/3/advcl "
        "wood/wood/NOUN/4/obj",
        "It/it/PRON/3/nsubjpass was/be/AUX/3/auxpass built/build/VERB/0/ROOT using/use/VERB/3/advcl "
        "wood/wood/NOUN/4/dobj",
        ["built it None None", "using None wood None"],
    ),
    "a suggestion has no doer": (
        "I/I/PRON/2/nsubj suggest/suggest/VERB/0/root leaving/leave/VERB/2/xcomp",
        "I/I/PRON/2/nsubj suggest/suggest/VERB/0/ROOT leaving/leave/VERB/2/xcomp",
        ["suggest i leaving None", "leaving None None None"],
    ),
    # Infinitives and gerunds at a noun.
    "infinitive at a noun": (
        "She/she/PRON/2/nsubj has/have/VERB/0/root plans/plan/NOUN/2/obj to/to/PART/5/mark "
        "leave/leave/VERB/3/acl",
        "She/she/PRON/2/nsubj has/have/VERB/0/ROOT plans/plan/NOUN/2/dobj to/to/PART/5/aux "
        "leave/leave/VERB/3/acl",
        ["has she plans None", "leave she None None"],
    ),
    "infinitive at a noun that someone is given": (
        "She/she/PRON/2/nsubj gave/give/VERB/0/root him/he/PRON/2/iobj days/day/NOUN/2/obj "
        "to/to/PART/6/mark do/do/VERB/4/acl it/it/PRON/6/obj",
        "She/she/PRON/2/nsubj gave/give/VERB/0/ROOT him/he/PRON/2/dative days/day/NOUN/2/dobj "
        "to/to/PART/6/aux do/do/VERB/4/acl it/it/PRON/6/dobj",
        ["gave she days None", "do him it None"],
    ),
    "infinitive that lacks the noun": (
        "He/he/PRON/2/nsubj has/have/VERB/0/root food/food/NOUN/2/obj to/to/PART/5/mark eat/eat/VERB/3/acl",
        "He/he/PRON/2/nsubj has/have/VERB/0/ROOT food/food/NOUN/2/dobj to/to/PART/5/aux eat/eat/VERB/3/acl",
        ["has he food None", "eat he food None"],
    ),
    "nobody works with a pleasure": (
        "She/she/PRON/3/nsubj is/be/AUX/3/cop pleasure/pleasure/NOUN/0/root to/to/PART/5/mark "
        "work/work/VERB/3/acl with/with/ADP/5/obl",
        "She/she/PRON/2/nsubj is/be/AUX/0/ROOT pleasure/pleasure/NOUN/2/attr to/to/PART/5/aux "
        "work/work/VERB/3/acl with/with/ADP/5/prep",
        ["work None None None"],
    ),
    "infinitive at the first to do it": (
        "the/the/DET/3/det first/first/ADJ/3/amod man/man/NOUN/6/nsubj to/to/PART/5/mark "
        "land/land/VERB/3/acl won/win/VERB/0/root",
        "the/the/DET/3/det first/first/ADJ/3/amod man/man/NOUN/6/nsubj to/to/PART/5/aux "
        "land/land/VERB/3/relcl won/win/VERB/0/ROOT",
        ["land man None None", "won man None None"],
    ),
    "trouble doing it": (
        "She/she/PRON/2/nsubj had/have/VERB/0/root trouble/trouble/NOUN/2/obj finding/find/VERB/3/acl "
        "it/it/PRON/4/obj",
        "She/she/PRON/2/nsubj had/have/VERB/0/ROOT trouble/trouble/NOUN/2/dobj finding/find/VERB/3/acl "
        "it/it/PRON/4/dobj",
        ["had she trouble None", "finding she it None"],
    ),
    "a gerund at a noun": (
        "Time/time/NOUN/4/nsubj for/for/SCONJ/3/mark leaving/leave/VERB/1/acl came/come/VERB/0/root",
        "Time/time/NOUN/4/nsubj for/for/ADP/1/prep leaving/leave/VERB/2/pcomp came/come/VERB/0/ROOT",
        ["leaving None None None", "came time None None"],
    ),
    # Heads that are no more than a quantity, or the first word of a name.
    "a quantity": (
        "A/a/DET/2/det lot/lot/NOUN/5/nsubj of/of/ADP/4/case people/people/NOUN/2/nmod died/die/VERB/0/root",
        "A/a/DET/2/det lot/lot/NOUN/5/nsubj of/of/ADP/2/prep people/people/NOUN/3/pobj died/die/VERB/0/ROOT",
        ["died people None None"],
    ),
    "a number that is spoken of": (
        "The/the/DET/2/det number/number/NOUN/5/nsubj of/of/ADP/4/case deaths/death/NOUN/2/nmod "
        "rose/rise/VERB/0/root",
        "The/the/DET/2/det number/number/NOUN/5/nsubj of/of/ADP/2/prep deaths/death/NOUN/3/pobj "
        "rose/rise/VERB/0/ROOT",
        ["rose number None None"],
    ),
    "both of which": (
        "tests/test/NOUN/6/nsubj both/both/PRON/5/nsubj of/of/ADP/4/case which/which/PRON/2/nmod "
        "failed/fail/VERB/1/acl:relcl ended/end/VERB/0/root",
        "tests/test/NOUN/6/nsubj both/both/PRON/5/nsubj of/of/ADP/2/prep which/which/PRON/3/pobj "
        "failed/fail/VERB/1/relcl ended/end/VERB/0/ROOT",
        ["failed tests None None", "ended tests None None"],
    ),
    "a name": (
        "Vladimir/Vladimir/PROPN/3/nsubj Putin/Putin/PROPN/1/flat spoke/speak/VERB/0/root",
        "Vladimir/Vladimir/PROPN/2/compound Putin/Putin/PROPN/3/nsubj spoke/speak/VERB/0/ROOT",
        ["spoke putin None None"],
    ),
    "a date": (
        "He/he/PRON/2/nsubj left/leave/VERB/0/root on/on/ADP/5/case May/May/PROPN/5/nmod:unmarked "
        "2/2/NUM/2/obl",
        "He/he/PRON/2/nsubj left/leave/VERB/0/ROOT on/on/ADP/2/prep May/May/PROPN/3/pobj 2/2/NUM/4/nummod",
        ["left he may on"],
    ),
    "a price": (
        "It/it/PRON/2/nsubj cost/cost/VERB/0/root £/£/SYM/2/obj 15/15/NUM/3/nummod",
        "It/it/PRON/2/nsubj cost/cost/VERB/0/ROOT £/£/SYM/4/nmod 15/15/NUM/2/dobj",
        ["cost it 15 None"],
    ),
    # Verbs of several words, and verbs that are no events.
    "a particle that was parsed as an adverb": (
        "He/he/PRON/2/nsubj came/come/VERB/0/root out/out/ADV/2/advmod quickly/quickly/ADV/2/advmod",
        "He/he/PRON/2/nsubj came/come/VERB/0/ROOT out/out/ADV/2/advmod quickly/quickly/ADV/2/advmod",
        ["came_out he None None"],
    ),
    "a particle over a preposition": (
        "He/he/PRON/2/nsubj moved/move/VERB/0/root back/back/ADV/2/advmod to/to/ADP/5/case "
        "Rome/Rome/PROPN/3/obl in/in/ADP/7/case May/May/PROPN/2/obl",
        "He/he/PRON/2/nsubj moved/move/VERB/0/ROOT back/back/ADV/2/advmod to/to/ADP/3/prep "
        "Rome/Rome/PROPN/4/pobj in/in/ADP/2/prep May/May/PROPN/6/pobj",
        ["moved_back he rome to"],
    ),
    "right away is no particle": (
        "He/he/PRON/2/nsubj called/call/VERB/0/root right/right/ADV/4/advmod away/away/ADV/2/advmod",
        "He/he/PRON/2/nsubj called/call/VERB/0/ROOT right/right/ADV/4/advmod away/away/ADV/2/advmod",
        ["called he None None"],
    ),
    "to have to": (
        "They/they/PRON/2/nsubj had/have/VERB/0/root to/to/PART/4/mark die/die/VERB/2/xcomp",
        "They/they/PRON/2/nsubj had/have/VERB/0/ROOT to/to/PART/4/aux die/die/VERB/2/xcomp",
        ["die they None None"],
    ),
    "to be supposed to": (
        "Men/man/NOUN/3/nsubj:pass are/be/AUX/3/aux:pass supposed/suppose/VERB/0/root to/to/PART/5/mark "
        "know/know/VERB/3/xcomp",
        "Men/man/NOUN/3/nsubjpass are/be/AUX/3/auxpass supposed/suppose/VERB/0/ROOT to/to/PART/5/aux "
        "know/know/VERB/3/xcomp",
        ["know men None None"],
    ),
    "to have is an event otherwise": (
        "They/they/PRON/2/nsubj had/have/VERB/0/root him/he/PRON/2/obj to/to/PART/5/mark "
        "help/help/VERB/2/xcomp",
        "They/they/PRON/2/nsubj had/have/VERB/0/ROOT him/he/PRON/2/dobj to/to/PART/5/aux "
        "help/help/VERB/2/xcomp",
        ["had they him None", "help him None None"],
    ),
    "gonna": (
        "He/he/PRON/3/nsubj 's/be/AUX/3/aux gon/go/VERB/0/root na/to/PART/5/mark leave/leave/VERB/3/xcomp",
        "He/he/PRON/3/nsubj 's/be/AUX/3/aux gon/go/VERB/0/ROOT na/to/PART/5/aux leave/leave/VERB/3/xcomp",
        ["leave he None None"],
    ),
    "dunno": (
        "I/I/PRON/4/nsubj du/do/AUX/4/aux n/not/PART/4/advmod no/know/VERB/0/root",
        "I/I/PRON/4/nsubj du/do/AUX/4/aux n/not/PART/4/neg no/know/VERB/0/ROOT",
        ["know i None None"],
    ),
    "let's": (
        "Let/let/VERB/0/root 's/we/PRON/1/obj leave/leave/VERB/1/xcomp",
        "Let/let/VERB/0/ROOT 's/we/PRON/3/nsubj leave/leave/VERB/1/ccomp",
        ["leave us None None"],
    ),
    "a formula": (
        "Thank/thank/VERB/0/root you/you/PRON/1/obj",
        "Thank/thank/VERB/0/ROOT you/you/PRON/1/dobj",
        [],
    ),
    "thanks are an event where someone gives them": (
        "She/she/PRON/3/nsubj must/must/AUX/3/aux thank/thank/VERB/0/root you/you/PRON/3/obj",
        "She/she/PRON/3/nsubj must/must/AUX/3/aux thank/thank/VERB/0/ROOT you/you/PRON/3/dobj",
        ["thank she you None"],
    ),
    "a participle that is a preposition": (
        "Depending/depend/VERB/5/advcl on/on/ADP/3/case rain/rain/NOUN/1/obl he/he/PRON/5/nsubj "
        "stays/stay/VERB/0/root",
        "Depending/depend/VERB/5/advcl on/on/ADP/1/prep rain/rain/NOUN/2/pobj he/he/PRON/5/nsubj "
        "stays/stay/VERB/0/ROOT",
        ["stays he None None"],
    ),
    # Objects.
    "what is said first is no object": (
        "With/with/ADP/2/case help/help/NOUN/4/obl they/they/PRON/4/nsubj built/build/VERB/0/root",
        "With/with/ADP/4/prep help/help/NOUN/1/pobj they/they/PRON/4/nsubj built/build/VERB/0/ROOT",
        ["built they None None"],
    ),
    "not even that": (
        "Before/before/ADP/2/case that/that/PRON/4/obl they/they/PRON/4/nsubj left/leave/VERB/0/root",
        "Before/before/ADP/4/prep that/that/PRON/1/pobj they/they/PRON/4/nsubj left/leave/VERB/0/ROOT",
        ["left they None None"],
    ),
    "but what is asked for is one": (
        "In/in/ADP/3/case which/which/DET/3/det town/town/NOUN/6/obl did/do/AUX/6/aux he/he/PRON/6/nsubj "
        "live/live/VERB/0/root",
        "In/in/ADP/6/prep which/which/DET/3/det town/town/NOUN/1/pobj did/do/AUX/6/aux he/he/PRON/6/nsubj "
        "live/live/VERB/0/ROOT",
        ["live he town in"],
    ),
    "a question that ends in a preposition": (
        "What/what/PRON/4/obj did/do/AUX/4/aux he/he/PRON/4/nsubj vote/vote/VERB/0/root for/for/ADP/4/obl",
        "What/what/PRON/5/pobj did/do/AUX/4/aux he/he/PRON/4/nsubj vote/vote/VERB/0/ROOT for/for/ADP/4/prep",
        ["vote he what for"],
    ),
    "a preposition that only adds": (
        "He/he/PRON/2/nsubj left/leave/VERB/0/root along/along/ADP/5/case with/with/ADP/5/case "
        "us/we/PRON/2/obl",
        "He/he/PRON/2/nsubj left/leave/VERB/0/ROOT along/along/ADP/2/prep with/with/ADP/3/prep "
        "us/we/PRON/4/pobj",
        ["left he None None"],
    ),
    "an object that coordinated verbs share": (
        "They/they/PRON/2/nsubj bought/buy/VERB/0/root and/and/CCONJ/4/cc sold/sell/VERB/2/conj "
        "cars/car/NOUN/2/obj",
        "They/they/PRON/2/nsubj bought/buy/VERB/0/ROOT and/and/CCONJ/2/cc sold/sell/VERB/2/conj "
        "cars/car/NOUN/2/dobj",
        ["bought they cars None", "sold they cars None"],
    ),
    "an object that they do not share": (
        "They/they/PRON/2/nsubj bought/buy/VERB/0/root cars/car/NOUN/2/obj and/and/CCONJ/5/cc "
        "left/leave/VERB/2/conj",
        "They/they/PRON/2/nsubj bought/buy/VERB/0/ROOT cars/car/NOUN/2/dobj and/and/CCONJ/2/cc "
        "left/leave/VERB/2/conj",
        ["bought they cars None", "left they None None"],
    ),
}
