"""The committed bundle follows the rules of community catalogs."""

import yaml

from bundle.catalog import CATALOG, Packed, read_bundle
from bundle.community import CI_FILE, findings
from bundle.release import ROOT


def test_committed_bundle_follows_every_rule() -> None:
    bundle: Packed = read_bundle(ROOT)
    assert findings(bundle, (ROOT / CATALOG).read_text(), yaml.safe_load((ROOT / CI_FILE).read_text())) == []
