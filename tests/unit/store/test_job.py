from crawld.store import job
from tests.unit.store.rows import NOW


def test_the_last_run_of_a_job_is_stored(connection):
    assert job.last_run(connection, "backup") is None
    job.record_start(connection, "backup", NOW)
    job.record_runs(connection, [job.JobRow("backup", NOW, NOW + 1, "ok", "12 MB")])
    job.record_start(connection, "backup", NOW + 2)
    row = job.last_run(connection, "backup")
    assert row == ("backup", NOW + 2, NOW + 1, "ok", "12 MB")
    assert job.list_jobs(connection) == [row]
