import pytest

from windowsill.archive.ranking import Facts
from windowsill.archive.speakers import named_in

pytestmark = pytest.mark.unit

ANN = Facts(0.0, "user", None, "Ann")
BOB = Facts(0.0, "assistant", None, "Bob")
TARO = Facts(0.0, "user", None, "太郎")
USER = Facts(0.0, "user", None, None)
MODEL = Facts(0.0, "assistant", None, None)
TOOL = Facts(0.0, "tool", "run", None)
ALL = (ANN, BOB, TARO, USER, MODEL, TOOL)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Ann buy?", [ANN]),
        ("what is ann's car?", [ANN]),
        ("What did Ann tell Bob?", []),
        ("Is Annabel here?", []),
        ("太郎は何を買った", [TARO]),
        ("What did I say?", [USER]),
        ("what did you answer", [MODEL]),
        ("what was in the output?", [TOOL]),
        ("what did I tell you?", []),
        ("zebras", []),
    ],
)
def test_a_question_names_who_it_asks_about(question, named):
    """A name, or a word for a role, chooses its passages; two of them choose none."""
    choose = named_in(question, ALL)
    assert [each for each in ALL if choose(each)] == named
