"""Scripts are text and back, and say what is wrong with them."""

import pytest

from moldau.simulation.faults.injector import ScriptPlan
from moldau.simulation.faults.script import FaultScript, ScriptedFault, ScriptError

TEXT = """\
seed 7
seconds 12.5
clients mill-1 payer-1
kill node-1 at step 5678 absence=1.250
cut client-1 at operation 77 seconds=2.5 way=there
"""


def test_a_script_is_text_and_back() -> None:
    script = FaultScript.parse(f"# found by chance\n\n{TEXT}")
    assert str(script) == TEXT
    assert (script.seed, script.seconds, script.clients) == (7, 12.5, ("mill-1", "payer-1"))
    kill, cut = script.faults
    assert (kill.kind, kill.target, kill.counter, kill.number) == ("kill", "node-1", "step", 5678)
    assert (cut.amount("seconds"), cut.text("way")) == (2.5, "there")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a script begins with `seed NUMBER` and `seconds NUMBER`"),
        ("seed 7", "a script begins with"),
        ("seed x\nseconds 1", "a script begins with"),
        ("seed 1\nseconds 1\nkill node-1", "is not KIND TARGET at EVENT NUMBER"),
        ("seed 1\nseconds 1\nkill node-1 at noon 1", "no event noon; there are operation, step"),
        ("seed 1\nseconds 1\nkill node-1 at step 1 soon", "soon is not NAME=VALUE"),
    ],
)
def test_what_is_no_script_is_refused(text: str, told: str) -> None:
    with pytest.raises(ScriptError, match=told):
        FaultScript.parse(text)


def test_what_cannot_happen_is_refused() -> None:
    with pytest.raises(ScriptError, match="no fault flood; there are kill, power-loss"):
        ScriptPlan([ScriptedFault("flood", "node-1", "step", 1)])
    with pytest.raises(ScriptError, match="it may happen at these events: step"):
        ScriptPlan([ScriptedFault("stop", "node-1", "sync", 1)])
    with pytest.raises(ScriptError, match="does not say absence="):
        ScriptedFault("kill", "node-1", "step", 1).amount("absence")
