"""Tables of jobs and wikis."""

from crawld.cli.jobs import jobs_table, wikis_table
from crawld.daemon.api.schemas.status import JobStatus, WikiPartStatus, WikiStatus
from tests.unit.cli.conftest import shown


def test_a_job_shows_its_result_and_progress():
    job = JobStatus(
        name="backfill",
        running=False,
        every_s=600,
        next_run_at=None,
        last_started_at=1.0,
        last_finished_at=3.0,
        last_duration_s=2.0,
        result="done",
        detail="1 wiki",
        progress={"waiting": 4, "complete": 0},
    )
    text = shown(jobs_table([job]))
    assert "backfill" in text
    assert "done 1 wiki" in text
    assert "4 waiting" in text
    assert "complete" not in text


def test_a_wiki_shows_its_error():
    wiki = WikiStatus(
        sites=["w", "v"],
        origin="http://a.test",
        api_url="http://a.test/w/api.php",
        generator="MediaWiki 1.39",
        pages={"complete": 30},
        request_count=35,
        change_count=122,
        trouble="lag",
        trouble_detail="7 s behind",
        trouble_count=1,
        closed_until=None,
        events_waiting=0,
        parts=[
            WikiPartStatus(
                site="v",
                members={"title": 2},
                listed={"page": 2, "invalid": 1},
                problems=["'Bad|title' is invalid: a title cannot contain '|'"],
            )
        ],
    )
    text = shown(wikis_table([wiki]))
    assert "v: 'Bad|title' is invalid: a title cannot contain '|'" in text
    assert "2 page, 1 invalid" in text
    assert "http://a.test/w/api.php" in text
    assert "lag: 7 s behind" in text
    assert "122" in text
    assert "w, v" in text
