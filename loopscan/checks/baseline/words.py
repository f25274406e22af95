"""What there is to say of a baseline, in sentences: names in them are neutralised and cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from loopscan.checks.baseline.data import Baseline, KnownMark, KnownSession
from loopscan.checks.baseline.ratchet import Difference, Judged, Less, Standing, UsedIgnore, differences
from loopscan.fingerprints import Content
from loopscan.policy import shown
from loopscan.reports.phrases import counted, number
from loopscan.sanitize import clean
from loopscan.sanitize import name as shown_name

_Thing = TypeVar("_Thing")

_NAMED = 3
_NAME = 60
_REASON = 200


def summary(judged: Judged) -> str:
    """Return the marks in one line: how many are new, known, ignored and gone."""
    new, known, ignored = (judged.count(standing) for standing in Standing)
    gone = sum(each.times for each in judged.gone)
    words = [f"{counted(new, 'new mark')}", f"{number(known)} in the baseline"]
    words += [f"{number(ignored)} ignored"] if ignored else []
    words += [f"{number(gone)} gone"] if gone else []
    return ", ".join(words)


def less(judged: Judged) -> Iterator[str]:
    """Yield what was not checked that was before, a sentence for each way."""
    for each in judged.less:
        noun = each.what.removesuffix("s")
        yield f"{counted(each.now, noun)} checked, {number(each.before)} in the baseline"
    if judged.gone_sessions:
        what = counted(len(judged.gone_sessions), "session of the baseline is", "sessions of the baseline are")
        yield f"{what} gone: {_named(judged.gone_sessions, _gone_session)}"
    if judged.shorter:
        what = counted(len(judged.shorter), "session has", "sessions have")
        yield f"{what} fewer calls than in the baseline: {_named(judged.shorter, _shorter_session)}"
    if judged.unread:
        yield f"not everything could be read: {_named(judged.unread, _complaint)}"


def settings(found: Iterable[Difference]) -> Iterator[str]:
    """Yield a sentence for each setting that is not as it was."""
    for each in found:
        yield f"{clean(each.setting, _REASON)} is {shown(each.now)}, {shown(each.before)} in the baseline"


def remarks(judged: Judged) -> Iterator[str]:
    """Yield what is to be said although it does not fail: marks that are gone, ignores that do nothing any more."""
    gone = sum(each.times for each in judged.gone)
    if gone:
        what = counted(gone, "mark of the baseline is", "marks of the baseline are")
        yield f"{what} gone, which --update drops: {_named(judged.gone, _gone_mark)}"
    if judged.gone and judged.count(Standing.NEW) and judged.versions[0] != judged.versions[1]:
        yield (
            f"the baseline was written by loopscan {clean(judged.versions[0], _NAME)}: versions may tell outcomes"
            " apart otherwise, which makes marks gone and new at once"
        )
    for used in judged.expired:
        again = f"{counted(used.marks, 'mark')} count again" if used.marks != 1 else "1 mark counts again"
        what = f"{again}; mend it, or give it a new date" if used.marks else "it is about no mark: delete it"
        yield f"{_ignore(used)} has expired on {used.ignore.until.isoformat()}: {what}"
    for used in judged.unused:
        yield f"{_ignore(used)} is about no mark: delete it"


def changes(before: Baseline | None, after: Baseline) -> Iterator[str]:
    """Yield what an update changes, a line each; nothing if it changes nothing that counts."""
    had: Counter[Content] = Counter({each.about: each.times for each in before.marks} if before else {})
    has: Counter[Content] = Counter({each.about: each.times for each in after.marks})
    checked = after.checked
    if before is None:
        yield (
            f"the baseline knows {counted(has.total(), 'mark')} of {counted(checked.sessions, 'session')} with"
            f" {counted(checked.calls, 'call')}"
        )
        return
    if added := (has - had).total():
        yield f"{counted(added, 'mark')} taken in"
    if dropped := (had - has).total():
        yield f"{counted(dropped, 'mark')} dropped"
    for what in ("sources", "sessions", "calls"):
        old, new = getattr(before.checked, what), getattr(checked, what)
        if old != new:
            yield f"{what}: {'lowered' if new < old else 'raised'} from {number(old)} to {number(new)}"
    here = {each.session: each.calls for each in after.sessions}
    if missing := [each for each in before.sessions if each.session not in here]:
        yield f"{counted(len(missing), 'session')} dropped: {_named(missing, _gone_session)}"
    lowered = [
        Less(each.session, each.calls, here[each.session])
        for each in before.sessions
        if here.get(each.session, each.calls) < each.calls
    ]
    if lowered:
        yield f"{counted(len(lowered), 'session')} lowered: {_named(lowered, _shorter_session)}"
    for each in differences(before.settings, after.settings):
        yield f"{clean(each.setting, _REASON)}: {shown(each.before)} becomes {shown(each.now)}"


def _named(things: Sequence[_Thing], words: Callable[[_Thing], str]) -> str:
    """Return the first few of some things in words, and how many more there are."""
    more = f" and {number(len(things) - _NAMED)} more" if len(things) > _NAMED else ""
    return ", ".join(map(words, things[:_NAMED])) + more


def _complaint(line: str) -> str:
    return clean(line, _REASON)


def _gone_session(each: KnownSession) -> str:
    return f"{shown_name(each.session, _NAME)} ({counted(each.calls, 'call')})"


def _shorter_session(each: Less) -> str:
    return f"{shown_name(each.what, _NAME)} ({number(each.now)} of {counted(each.before, 'call')})"


def _gone_mark(each: KnownMark) -> str:
    about = each.about
    times = f", {number(each.times)} times" if each.times > 1 else ""
    tool = f" of {shown_name(about.tool, _NAME)}" if about.tool is not None else ""
    at = f" at {number(about.count)}" if about.count is not None else ""
    return f"{about.kind.value} {about.detector.value}{at}{tool} in {shown_name(about.session, _NAME)}{times}"


def _ignore(used: UsedIgnore) -> str:
    return f'ignores[{used.place}] ("{clean(used.ignore.reason, _NAME)}")'
