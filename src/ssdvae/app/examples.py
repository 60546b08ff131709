"""Texts to try the explorer with, each with its events, for a machine without a parser."""

EXAMPLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "An arrest",
        "Police arrested a suspect in London. He was charged with murder. The court sentenced him to death.",
        ("arrested police suspect in", "charged he murder with", "sentenced court him to"),
    ),
    (
        "A life",
        "She was born in Paris. She studied at the university. She married a lawyer. She died in 1950.",
        ("born she paris in", "studied she university at", "married she lawyer", "died she 1950 in"),
    ),
    (
        "A battle",
        "The army attacked the city. Its soldiers defended the walls. The enemy captured the fortress.",
        ("attacked army city", "defended soldiers walls", "captured enemy fortress"),
    ),
    (
        "A season",
        "The team signed a striker. He scored ten goals. They won the league. The club sold him.",
        ("signed team striker", "scored he goals", "won they league", "sold club him"),
    ),
    (
        "A film",
        "The studio hired a director. He filmed the story. Critics praised the film. It won an award.",
        ("hired studio director", "filmed he story", "praised critics film", "won it award"),
    ),
    (
        "A company",
        "Two engineers founded the company. It developed software. A rival bought the company.",
        ("founded engineers company", "developed it software", "bought rival company"),
    ),
    (
        "A storm",
        "The storm hit the coast. It destroyed houses. Thousands fled the town. Workers rebuilt it.",
        ("hit storm coast", "destroyed it houses", "fled thousands town", "rebuilt workers it"),
    ),
    (
        "An election",
        "The party nominated her. Voters elected her. She resigned from office.",
        ("nominated party her", "elected voters her", "resigned she office from"),
    ),
    (
        "A ship",
        "The ship left the harbour. A storm damaged the ship. It sank. Boats rescued the crew.",
        ("left ship harbour", "damaged storm ship", "sank it", "rescued boats crew"),
    ),
    (
        "Something odd",
        "Police arrested a suspect. The choir sang a hymn. The court sentenced him to prison.",
        ("arrested police suspect", "sang choir hymn", "sentenced court him to"),
    ),
)
"""A title, a text and its events: verb, subject, object, modifier."""
