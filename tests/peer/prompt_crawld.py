"""`crawld` whose histories of wikis wait shorter: `python -m tests.peer.prompt_crawld`.

They wait up to 300 s for the next poll, 20 s after a hint until the wiki is calm, and 15 s for the
first copy of a site. Here all these pauses take a second; what comes before what is the same.
"""

from crawld.cli.main import main
from crawld.daemon.crawl import api_client
from crawld.daemon.jobs.wiki_history import job, reader

PAUSE_S = 1.0

api_client.CALM_S = PAUSE_S
job.ACTIVE_EVERY_S = job.FIRST_COPY_WAIT_S = PAUSE_S
reader.FEED_MAX_AGE_S = reader.REGISTER_EVERY_S = PAUSE_S


if __name__ == "__main__":
    main()
