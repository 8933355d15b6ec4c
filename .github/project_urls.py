"""Print the table `project.urls` of pyproject.toml for the repository that a workflow runs in.

The metadata of a wheel so names the repository that built it, also in a fork. The source names none.
"""

import os

REPOSITORY = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
OWNER, _, NAME = os.environ["GITHUB_REPOSITORY"].partition("/")

print(f"""
[project.urls]
Source = "{REPOSITORY}"
Documentation = "https://{OWNER.lower()}.github.io/{NAME}/"
Changelog = "{REPOSITORY}/blob/main/CHANGELOG.md"
Issues = "{REPOSITORY}/issues\"""")
