"""Read the fitted models of a site."""

from __future__ import annotations

import structlog

from crawld.core.change.site_model import SiteModel, default_site_model
from crawld.store.changes import model
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)


async def read_site_model(database: Database, site_id: int) -> SiteModel:
    """Return the models of a site; those of a site without a past where none are stored."""
    stored = await database.read(model.site_of, site_id)
    if stored is None:
        return default_site_model()
    try:
        return SiteModel.from_dict(stored)
    except ValueError as error:
        log.warning("site_models_unreadable", site=site_id, why=str(error))
        return default_site_model()
