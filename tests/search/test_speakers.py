import pytest

from windowsill.search.query import named_speaker
from windowsill.store.search_index import PassageFacts

pytestmark = pytest.mark.unit

ANN = PassageFacts(0.0, "user", None, "Ann")
BOB = PassageFacts(0.0, "assistant", None, "Bob")
TARO = PassageFacts(0.0, "user", None, "太郎")
USER = PassageFacts(0.0, "user", None, None)
MODEL = PassageFacts(0.0, "assistant", None, None)
TOOL = PassageFacts(0.0, "tool", "run", None)
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
    choose = named_speaker(question, ALL)
    assert [each for each in ALL if choose(each)] == named
