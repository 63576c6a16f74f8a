"""Wrong texts, sizes and catalogues, and what only one generation of OLM takes: one thing in each bundle."""

from bundle.catalog import CATALOG
from bundle.release import MANIFESTS, SCORECARD
from unit.bundle import broken
from unit.bundle.broken import CRD, GOOD, NAME, Broken

ENTRY = {"name": "memcached-operator.v999.0.0"}
CONVERSION = {"type": "ConversionWebhook", "generateName": "cmemcacheds.kb.io"}


def drawn(width: str = "128", more: str = "") -> bytes:
    """An icon."""
    box = f'width="{width}" height="128" viewBox="0 0 128 128"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{more}</svg>'.encode()


PRESENTATION = [
    Broken("presentation", ("spec.icon", "0"), broken.spec(icon=[])),
    Broken("presentation", ("icon.mediatype", "image/png"), broken.icon(b"<svg/>", "image/png")),
    Broken("presentation", ("icon.base64data", "must be an SVG"), broken.icon(b"\x89PNG")),
    Broken(
        "presentation",
        ("icon.base64data", "must be an SVG"),
        broken.spec(icon=[{"base64data": "%", "mediatype": "image/svg+xml"}]),
    ),
    Broken("presentation", ("icon.base64data", "32768"), broken.icon(b"<svg>" + b" " * 40_000 + b"</svg>")),
    Broken("presentation", ("capabilities", '"Full"', "Seamless Upgrades"), broken.annotation("capabilities", "Full")),
    Broken(
        "presentation", ("capabilities", '"Auto Pilot"', "not built"), broken.annotation("capabilities", "Auto Pilot")
    ),
    Broken("presentation", ("icon.base64data", "square"), broken.icon(drawn("64"))),
    Broken("presentation", ("icon.base64data", '"script"', "must go"), broken.icon(drawn(more="<script/>"))),
    Broken("presentation", ("icon.base64data", '"g"', "must go"), broken.icon(drawn(more='<g onload="x()"/>'))),
    Broken("presentation", ("categories", '"Cache"', "Database"), broken.annotation("categories", "Database, Cache")),
    Broken("presentation", ("createdAt", '"today"'), broken.annotation("createdAt", "today")),
    Broken("presentation", ("[description]", "135"), broken.annotation("description", "x" * 136)),
    Broken("presentation", ("repository", "must be there"), broken.annotation("repository", "")),
    Broken("presentation", ("olm.skiprange", "mind the case"), broken.annotation("olm.skiprange", "<1.0.0")),
    Broken("presentation", ("spec.displayName",), broken.spec(displayName="x")),
    Broken("presentation", ("spec.description", "decide"), broken.spec(description="Runs memcached.")),
    Broken("presentation", ("spec.provider.name",), broken.spec(provider={})),
    Broken("presentation", ("spec.keywords",), broken.spec(keywords=[])),
    Broken("presentation", ("spec.maintainers",), broken.spec(maintainers=[{"name": "x", "email": "nobody"}])),
    Broken("presentation", ("spec.links",), broken.spec(links=[{"name": "x", "url": "example.com"}])),
]
SIZE = [
    Broken(
        "size",
        ("compressed bytes", "less than"),
        GOOD | {f"{MANIFESTS}/x": "".join(f"{i * i:x}" for i in range(260_000))},
    )
]
GRAPH = [
    Broken("graph", ("olm.package", "one"), broken.catalog(lambda d: d.pop(0))),
    Broken("graph", ("defaultChannel", '"fast"'), broken.catalog(lambda d: d[0].update(defaultChannel="fast"))),
    Broken("graph", ("olm.bundle.name", NAME, "once"), broken.catalog(lambda d: d.append(d[-1]))),
    Broken(
        "graph",
        ("olm.channel.entries", "v999.0.0", "olm.bundle"),
        broken.catalog(lambda d: d[1]["entries"].append(ENTRY)),
    ),
    Broken("graph", ("properties", "one olm.package"), broken.catalog(lambda d: d[-1]["properties"].pop(0))),
    Broken("graph", ("image", "null", "BUNDLE_IMG"), broken.catalog(lambda d: d[-1].pop("image"))),
    Broken(
        "graph",
        ("one head", f"{NAME}, {ENTRY['name']}"),
        broken.catalog(lambda d: d[1]["entries"].append(ENTRY)),
    ),
    Broken(
        "graph",
        ("circle",),
        broken.catalog(
            lambda d: d[1].update(
                entries=[{"name": "c", "replaces": "b"}, {"name": "b", "replaces": "a"}, {"name": "a", "replaces": "b"}]
            )
        ),
    ),
    Broken(
        "graph",
        ('"a"', "reached from c"),
        broken.catalog(
            lambda d: d[1].update(
                entries=[{"name": "c"}, {"name": "a", "replaces": "b"}, {"name": "b", "replaces": "a"}]
            )
        ),
    ),
]
GENERATIONS = [
    Broken(
        "generations",
        ("installModes[MultiNamespace]: []", "stand once"),
        broken.csv(lambda c: c["spec"]["installModes"].pop(2)),
    ),
    *(
        Broken(
            "generations",
            ("installModes", "[false]", "be true"),
            broken.csv(lambda c, n=n: c["spec"]["installModes"][n].update(supported=False)),
        )
        for n in range(4)
    ),
    Broken(
        "generations",
        ("installModes[OwnNamespace]: [true, true]",),
        broken.csv(lambda c: c["spec"]["installModes"].append(c["spec"]["installModes"][0])),
    ),
    Broken(
        "generations",
        ('"Everywhere"', "must be one of"),
        broken.csv(lambda c: c["spec"]["installModes"].append({"type": "Everywhere", "supported": True})),
    ),
    Broken(
        "generations",
        ("customresourcedefinitions.required", "OLM v1 refuses"),
        broken.csv(lambda c: c["spec"]["customresourcedefinitions"].update(required=[{"name": "x.y"}])),
    ),
    Broken(
        "generations", ("apiservicedefinitions.owned",), broken.spec(apiservicedefinitions={"owned": [{"name": "x"}]})
    ),
    Broken(
        "generations", ("apiservicedefinitions.required",), broken.spec(apiservicedefinitions={"required": [{"n": 1}]})
    ),
    Broken(
        "generations",
        ("cmemcacheds.kb.io", "AllNamespaces only"),
        broken.csv(lambda c: c["spec"]["webhookdefinitions"].append(CONVERSION)),
    ),
    Broken(
        "generations",
        (CRD, "spec.conversion", "Webhook"),
        broken.changed(CRD, lambda d: d["spec"].update(conversion={"strategy": "Webhook"})),
    ),
]
PUBLISHED = [
    Broken(
        "published",
        ("spec.replaces", "v0.0.9", "one of the releases"),
        broken.spec(replaces="memcached-operator.v0.0.9"),
    ),
    Broken("published", (CATALOG, "channel stable", "make catalog"), broken.annotation("olm.skipRange", "<0.1.0")),
    Broken("published", (CATALOG, "channel fast"), broken.labels(channels="stable,fast")),
    Broken("published", (CATALOG, "channel stable", "must be none"), broken.labels(channels="fast")),
    Broken(
        "published", (CATALOG, f"package of {NAME}", '"other"'), broken.catalog(lambda d: d[-1].update(package="other"))
    ),
    Broken(
        "published", (CATALOG, f"relatedImages of {NAME}"), broken.catalog(lambda d: d[-1].update(relatedImages=[]))
    ),
    Broken("published", (CATALOG, f"properties of {NAME}"), broken.spec(maturity="stable")),
    Broken("published", (CATALOG, f"colour of {NAME}"), broken.catalog(lambda d: d[-1].update(colour="red"))),
]
SCORECARDS = [
    Broken(
        "scorecard", (SCORECARD, "olm-spec-descriptors", "must have the labels"), broken.scorecard(lambda t: t.pop(4))
    ),
    Broken(
        "scorecard", ("basic-check-spec", "other"), broken.scorecard(lambda t: t[0]["labels"].update(suite="other"))
    ),
    Broken(
        "scorecard",
        ("more", "is no test"),
        broken.scorecard(lambda t: t[5].update(entrypoint=["scorecard-test", "more"])),
    ),
]
ROWS = (*PRESENTATION, *SIZE, *GRAPH, *PUBLISHED, *GENERATIONS, *SCORECARDS)
