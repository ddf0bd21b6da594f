"""Names that every set shares: of things, each made of an adjective and a noun, and of people."""

from __future__ import annotations

from tenuto.evaluation.phrases.shape import rows

ADJECTIVES = rows(
    "amber, brisk, calm, dusky, eager, faint, gentle, hollow, iron, jolly, keen, lunar, mellow, noble",
    "olive, plain, quiet, rapid, silver, tidy, upper, vivid, warm, young, zesty, bold, coarse, dense",
    "early, frosty",
)
NOUNS = rows(
    "anchor, basket, canal, depot, engine, ferry, garden, harbor, island, jacket, kettle, ladder, market",
    "needle, orchard, parcel, quarry, ribbon, saddle, tunnel, umbrella, valley, wagon, yard, zipper",
    "beacon, cellar, drawer, elbow, fender",
)
PEOPLE = rows(
    "Amina Adeyemi, Ruben Castellano, Mei Tanaka, Oskar Lindqvist, Priya Raghavan, Jonas Weidner",
    "Leila Haddad, Tomasz Wrona, Ingrid Solberg, Mateus Figueira, Yuki Hasegawa, Clara Obermeier",
    "Dmitri Volkonsky, Nadia Benali, Piet van Houten",
)
