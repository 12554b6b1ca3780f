"""How a taker of weighed or demanding work gives, one transfer after the other."""

from collections import Counter
from dataclasses import replace

import pytest

from fairlead.actors.assignors.balancing.allocation import Allocation
from fairlead.actors.assignors.balancing.dealer import Dealer
from fairlead.actors.assignors.balancing.holdings import split_holdings
from fairlead.actors.assignors.balancing.workers import classes_of, workers_of
from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.computing import MemberView, Needs, Snapshot
from fairlead.events.model import NOTHING, Resource, Resources
from fairlead.events.placement import Abilities, encode_abilities
from fairlead_tests.assignors.snapshots import after, member, snapshot, work

TAGS = ("a", "b", "c", "d")


def worker(name: str, target: Resources = NOTHING, tags: tuple[str, ...] = TAGS) -> MemberView:
    said = encode_abilities(Abilities(1, frozenset(tags)))
    return replace(member(name, target, metadata=said), worker=name)


def of_many_classes(weight: int) -> Snapshot:
    """Return a group where one has all, of five classes, and each of the others may run some."""
    everything = frozenset(Resource(each, task) for each in (*TAGS, "z") for task in range(20))
    newcomers = [worker(f"w-{tag}", tags=(tag,)) for tag in TAGS]
    group = snapshot(everything, worker("W0", everything), *newcomers)
    needs = {tag: Needs(tags=frozenset({tag})) for tag in TAGS}
    weights = {each: weight for each in everything if each.task % 2}
    return replace(group, needs=needs, weights=weights)


@pytest.mark.parametrize("weight", [1, 3], ids=["weighs the same", "weighed"])
def test_however_much_one_gives_each_dealer_hears_of_it_once(
    weight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    requeued = Counter[int]()
    requeues = Dealer.requeue

    def counted(dealer: Dealer, workers: object, index: int) -> None:
        requeued[index] += 1
        requeues(dealer, workers, index)  # type: ignore[arg-type]

    group = of_many_classes(weight)
    monkeypatch.setattr(Dealer, "requeue", counted)
    made = assign(group)
    loads = [sum(group.weights.get(each, 1) for each in share) for share in made.members.values()]
    assert max(loads) - min(loads) <= weight
    assert requeued == {0: 5}, "there is one dealer for each class"


def test_who_has_given_is_the_next_to_get_if_that_makes_it_the_emptiest() -> None:
    group = snapshot("A-0 A-1 A-2 B-0 B-1 B-2", worker("W1", work("A-0 A-1 A-2")), worker("W2"))
    workers = workers_of([*group.members.values()])
    held = [view.target for view in workers.takers]
    _, tasks = split_holdings(held, work("B-0 B-1 B-2"), NOTHING, ())
    allocation = Allocation(workers, tasks, classes_of(group, workers, group.configured), {})
    sort = 1, 0
    allocation.deal_unassigned()
    assert (allocation.loads, allocation.least(sort)) == ([3, 3], 4)
    for _ in range(2):
        allocation.give_up(0, sort)
    allocation.requeue(0)
    assert (allocation.loads, allocation.least(sort)) == ([1, 3], 2)
    allocation.deal(Resource("B", 9), sort)
    assert allocation.loads == [2, 3]


def test_what_one_gave_bit_by_bit_stays_when_it_is_assigned_again() -> None:
    group = of_many_classes(3)
    made = assign(group)
    assert assign(after(group, made)) == made
