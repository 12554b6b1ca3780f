"""A member that leaves says with each request what it still owns: its target may move on.

What it was granted since, it never begins; were that taken back without a word of what it
owns, the group would wait for an acknowledgement that never comes, and then end its session.
"""

from fairlead_tests.membership.driver import resources, seated


def test_a_member_that_leaves_says_with_every_request_what_still_runs() -> None:
    driver = seated()
    driver.leave()
    driver.stopped("A")
    for target in ("A-0", "A-0 A-1", "A-0"):
        assert driver.answer(target) == []
        last = driver.sent[-1]
        assert (last.is_full, last.owned) == (False, tuple(sorted(resources("A-0"))))
