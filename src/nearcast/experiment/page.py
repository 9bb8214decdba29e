"""A report as a page of its own: one HTML file with the verdicts and all figures in it."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Final

from nearcast.errors import InvalidRecord
from nearcast.experiment.campaign import Report
from nearcast.experiment.checks import CheckResult, PartResult
from nearcast.experiment.wording import number

PAGE: Final = "report.html"

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: 0 } h1 + p { color: #666; margin-top: .2rem }
table { border-collapse: collapse; width: 100%; margin: 1.5rem 0; font-variant-numeric: tabular-nums }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #e4e4e4 }
th { border-bottom: 2px solid #aaa; font-weight: 600 } td.number { text-align: right; white-space: nowrap }
tr.check td { border-top: 1px solid #aaa; font-weight: 600 } tr.part td { color: #444; font-size: .93rem }
td.why { color: #666; font-size: .9rem } figure { margin: 2rem 0 } img { max-width: 100% }
figcaption { color: #666; font-size: .9rem }
.reproduced { color: #00694b } .deviates { color: #b34700 } .other { color: #666 }
"""


def write_page(report: Report, folder: Path) -> Path:
    """Write it beside the report; the path of the file."""
    seeds = f"{len(report.seeds)} seed{'s' if len(report.seeds) > 1 else ''}"
    length = "quick runs" if report.quick else "runs as long as the document's"
    length += f", {report.longer} times as long where nothing changes" if report.longer > 1 else ""
    rows = "".join(_check(check) for check in report.checks)
    figures = "".join(_figure(folder / figure.png, figure.caption) for figure in report.figures)
    failures = "".join(f"<li>{escape(run)}: {escape(why)}</li>" for run, why in report.failures.items())
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(report.experiment)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(report.title)}</h1><p>{escape(report.experiment)}: {escape(report.document)}; {seeds}, {length}</p>
<table><thead><tr><th></th><th>stated</th><th>measured</th><th>accepted</th><th>verdict</th></tr></thead><tbody>
{rows}</tbody></table>
{f"<h2>Runs that failed</h2><ul>{failures}</ul>" if failures else ""}{figures}</body></html>
"""
    path = folder / PAGE
    path.write_text(text, encoding="utf-8")
    return path


def _check(check: CheckResult) -> str:
    single = check.parts[0] if len(check.parts) == 1 else None
    colour = check.verdict if check.verdict in ("reproduced", "deviates") else "other"
    cells = (
        f"<td>{_measured(single)}</td><td>{escape(single.accepted + single.unit)}</td>"
        if single
        else "<td></td><td></td>"
    )
    head = (
        f'<tr class="check"><td>{escape(check.id)}</td><td>{escape(check.stated)}</td>{cells}'
        f'<td class="{colour}">{check.verdict}</td></tr>'
    )
    parts = "" if single else "".join(_part(part) for part in check.parts)
    return f'{head}{parts}<tr><td></td><td class="why" colspan="4">{check.basis}; {escape(check.why)}</td></tr>\n'


def _part(part: PartResult) -> str:
    holds = {True: "holds", False: '<span class="deviates">does not hold</span>', None: "not measured"}[part.holds]
    return (
        f'<tr class="part"><td></td><td>{escape(part.name)}</td><td>{_measured(part)}</td>'
        f"<td>{escape(part.accepted + part.unit)}</td><td>{holds}</td></tr>"
    )


def _measured(part: PartResult) -> str:
    return escape(number(part))


def _figure(path: Path, caption: str) -> str:
    try:
        image = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise InvalidRecord(f"{path} cannot be read ({error.strerror}); run the experiment again to draw it") from None
    return f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{image}"><figcaption>{escape(caption)}</figcaption></figure>\n'
