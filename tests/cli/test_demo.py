"""What ``make demo`` prints."""

from __future__ import annotations

from maxdisc.cli.demo import breast_cancer_task, run, write_report


def test_the_demo_compares_and_shows_what_was_learnt():
    lines: list[str] = []
    result, _ = run(breast_cancer_task(), lines.append)
    text = "\n".join(lines)
    assert result["maxdisc"] > 0.93
    assert f"maxdisc {result['maxdisc']:.3f}" in text
    assert f"{result['peer']:.3f}" in text
    assert "features kept" in text
    assert "malignant" in text
    assert "worst" in text


def test_the_report_of_the_demo_is_written(tmp_path):
    task = breast_cancer_task()
    _, model = run(task, lambda _: None)
    write_report(task, model, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "malignant" in page
    assert "<svg" in page
