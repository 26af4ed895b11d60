"""What an accessibility engine finds in a page."""

from axe_playwright_python.sync_playwright import Axe


def serious_violations(page):
    """Violations that prevent reading or reaching something, with their elements."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:160]}: {node['failureSummary'][:300]}" for each in found
            if each["impact"] in ("serious", "critical") for node in each["nodes"][:3]]
