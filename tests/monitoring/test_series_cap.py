"""No more topics have series of their own than were asked for, and none is dropped: the others are counted together."""

from __future__ import annotations

from tieredctl.ops.monitoring.topic_figures import OTHERS, SeriesCap, TopicFigures


def topics(**sizes: int) -> list[TopicFigures]:
    return [
        TopicFigures(
            name, is_in_cluster=True, segments=1, remote_bytes=size, local_bytes=1, lag_segment_sizes=float(size)
        )
        for name, size in sizes.items()
    ]


def test_the_largest_have_series_and_the_others_are_one() -> None:
    shown, others = SeriesCap(1).apply(topics(a=1, b=5, c=2))

    assert [(one.topic, one.segments, one.remote_bytes, one.lag_segment_sizes) for one in shown] == [
        ("b", 1, 5, 5.0),
        (OTHERS, 2, 3, 2.0),
    ]
    assert others == 2


def test_a_topic_keeps_its_series_while_it_is_there() -> None:
    cap = SeriesCap(1)

    assert [cap.apply(found)[0][0].topic for found in (topics(a=2, b=1), topics(a=2, b=9), topics(b=9, c=10))] == [
        "a",
        "a",
        "c",
    ]


def test_what_is_unknown_of_one_is_unknown_of_all_together() -> None:
    known, unknown = topics(a=1)[0], TopicFigures("b", is_in_cluster=True)

    (together,), _ = SeriesCap(0).apply([known, unknown])

    assert (together.segments, together.local_bytes, together.lag_segment_sizes) == (None, None, None)


def test_a_deleted_topic_has_no_disks_and_hides_those_of_no_other() -> None:
    (together,), _ = SeriesCap(0).apply([*topics(a=1), TopicFigures("gone", segments=2, remote_bytes=3)])

    assert (together.segments, together.remote_bytes, together.local_bytes) == (3, 4, 1)


def test_a_topic_that_is_called_as_the_others_are_is_one_of_them() -> None:
    shown, others = SeriesCap(2).apply(topics(a=1, **{OTHERS: 5}, b=2, c=3))

    assert [(one.topic, one.remote_bytes) for one in shown] == [("b", 2), ("c", 3), (OTHERS, 6)]
    assert others == 2
