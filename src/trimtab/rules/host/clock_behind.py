"""This host's clock is behind: the engine was installed in its future.

What it does: compares the clock with the time at which the engine's files were written.
Why it matters: certificates are not valid yet (downloads fail), tokens are refused, and times in logs and journals
    do not follow one another.
How to fix: set the clock: timedatectl set-ntp true, or wsl --shutdown after a long sleep under WSL.
When to ignore: when the engine was copied from a host whose clock is ahead.
Sources: RFC 5280 (validity of certificates); systemd-timesyncd.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

LEEWAY_S = 600


def check(context: HostContext) -> Iterator[Finding]:
    now, written = context.record.now, context.record.packages.installed_at
    if now is not None and written is not None and written - now > LEEWAY_S:
        yield Finding(
            msg(
                "the clock is at least {hours:.1f} h behind: the engine's files are newer than now",
                zh="时钟至少慢了 {hours:.1f} 小时：引擎的文件比现在还新",
                hours=(written - now) / 3600,
            )
        )


RULE = Rule(
    code="HST303",
    name="clock-behind",
    severity=Severity.WARNING,
    summary=msg(
        "This host's clock is behind: the engine was installed in its future.",
        zh="本机时钟落后：引擎的安装时间在它的未来。",
    ),
    check=check,
    sources=("https://www.rfc-editor.org/rfc/rfc5280",),
    bad=(
        Example(
            '{"now": 1700000000.0, "packages": {"installed_at": 1700090000.0}}\n',
        ),
    ),
    good=(
        Example(
            '{"now": 1700090000.0, "packages": {"installed_at": 1700000000.0}}\n',
        ),
        Example(
            "{}\n",
        ),
    ),
)
