"""Plans that several tests of the universe begin with."""

from crawld.universe.plan import HostPlan, NameEdition, RobotsEdition


def plain_host(pages, faults=(), **more):
    """Return a host whose robots.txt permits everything, at one address."""
    names, robots = (NameEdition(0.0, "93.184.216.10"),), (RobotsEdition(0.0, "", None),)
    return HostPlan("a.test", names, pages, 5, robots, faults, **more)
