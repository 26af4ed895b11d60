"""Runs an accessibility checker on a page."""

from axe_playwright_python.sync_playwright import Axe


def serious_violations(page):
    """Violations that make content unreadable or unreachable, with their elements."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:160]}: {node['failureSummary'][:300]}" for each in found
            if each["impact"] in ("serious", "critical") for node in each["nodes"][:3]]
