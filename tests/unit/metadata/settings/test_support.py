"""Every setting is honoured or says why not, and docs/settings.md says the same."""

import pytest

from moldau.metadata.settings.setting import Settings
from moldau.metadata.settings.support import TABLES, support_of
from tools.settings_page import PATH, SECTIONS, page


@pytest.mark.parametrize("group", TABLES)
def test_every_setting_has_a_verdict(group: type[Settings]) -> None:
    for name in group.declared:
        support = support_of(group, name)
        assert support.is_honoured or support.note, name


@pytest.mark.parametrize("group", TABLES)
def test_every_verdict_has_a_setting(group: type[Settings]) -> None:
    honoured, refused = TABLES[group]
    assert honoured.keys() <= group.declared.keys()
    for key in refused:
        assert any(
            name == key or (key.endswith("*") and name.startswith(key[:-1]))
            for name in group.declared
        ), key


def test_page_is_up_to_date() -> None:
    assert {group for _, group in SECTIONS} == set(TABLES)
    assert PATH.read_text() == page(), "run python -m tools.settings_page"
