"""A storm of edits on a real MediaWiki, and its mirror judged by what a reader sees.

`python -m tests.peer.storm --help` runs it; `make storm` does so with the figures of the project.

    corpus    the pages before the storm: titles, templates, categories, redirects, files
    model     what the wiki shows, kept by the harness itself; what belongs to the mirrored part
    editor    changes the wiki through its API, and the model with it
    schedule  which change comes when, by seed
    reader    reads the mirror through its web listener
    watch     which change is visible in the mirror since when
    world     the wiki, its job queue, the daemon, the listener, kills and the outage
    final     compares every page, redirect, image and membership with the wiki after the storm
    report    the figures against what is asked

Every text has a mark: the key of its page or template and the number of the edit, in words (a page
may have digits as noise). A copy tells by its marks which edits it shows, so a probe needs no
request to the wiki.
"""
