"""What may differ, each with its reason. Everything else is a mistake in Helenus.

An entry is a function of Cassandra's answer, ours and the step; the text that it stands beside says why. Those that change what a
user gets are in docs/compatibility.md, under the words in brackets.
"""


def same_code(theirs, ours, code):
    return theirs["kind"] == ours["kind"] == "error" and theirs["code"] == ours["code"] == code


REASONS = [
    (
        "the words of a syntax error: ours say what was expected at which place, those of Cassandra what its parser generator was about",
        lambda theirs, ours, step: same_code(theirs, ours, "2000"),
    ),
]


def reason(theirs, ours, step):
    return next((why for why, applies in REASONS if applies(theirs, ours, step)), None)
