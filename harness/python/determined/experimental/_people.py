"""Users, workspaces and projects of the cluster."""

from typing import Any, Dict, List, Optional

from determined._absent import Lacking
from determined.experimental._experiment import Experiment, by_name, pages, projects
from determined.experimental._master import Master, hash_password
from determined.experimental._told import Told


class User(Told):
    def _take(self, raw: Dict[str, Any]) -> None:
        self.user_id: int = raw["id"]
        self.username: str = raw["username"]
        self.admin: bool = raw["admin"]
        self.active: bool = raw["active"]
        self.display_name: str = raw.get("displayName") or ""
        self.remote: bool = raw.get("remote") or False

    def __repr__(self) -> str:
        return f"User(user_id={self.user_id}, username={self.username!r})"

    def reload(self) -> None:
        self._take(self._master.get(f"/api/v1/users/{self.user_id}")["user"])

    def _patch(self, **changes: Any) -> None:
        self._take(self._master.patch(f"/api/v1/users/{self.user_id}", changes)["user"])

    def rename(self, new_username: str) -> None:
        self._patch(username=new_username)

    def activate(self) -> None:
        self._patch(active=True)

    def deactivate(self) -> None:
        self._patch(active=False)

    def change_display_name(self, display_name: str) -> None:
        self._patch(displayName=display_name)

    def change_password(self, new_password: str) -> None:
        self._patch(password=hash_password(new_password), isHashed=True)

    def link_with_agent(
        self,
        agent_uid: Optional[int] = None,
        agent_gid: Optional[int] = None,
        agent_user: Optional[str] = None,
        agent_group: Optional[str] = None,
    ) -> None:
        """As whom the tasks of this user run on agents."""
        group = {"agentUid": agent_uid, "agentGid": agent_gid, "agentUser": agent_user, "agentGroup": agent_group}
        self._patch(agentUserGroup=group)


class Project(Told):
    """Experiments that belong together, in a workspace."""

    _LACKS = {
        "add_note": "a project has none; an experiment has: Experiment.set_notes()",
        "remove_note": "a project has none; an experiment has: Experiment.set_notes()",
    }

    def _take(self, raw: Dict[str, Any]) -> None:
        self.id: int = raw["id"]
        self.name: str = raw["name"]
        self.description: str = raw.get("description") or ""
        self.workspace_id: int = raw["workspaceId"]
        self.archived: bool = raw["archived"]

    def __repr__(self) -> str:
        return f"Project(id={self.id}, name={self.name!r})"

    def reload(self) -> None:
        self._take(self._master.get(f"/api/v1/projects/{self.id}")["project"])

    def list_experiments(self) -> List[Experiment]:
        raw = pages(lambda o: self._master.get("/api/v1/experiments", offset=o, limit=200, projectId=self.id), "experiments")
        return [Experiment._of(self._master, e) for e in raw]

    def set_name(self, name: str) -> None:
        self._patch({"name": name})

    def set_description(self, description: str) -> None:
        self._patch({"description": description})

    def _patch(self, words: Dict[str, str]) -> None:
        self._take(self._master.patch(f"/api/v1/projects/{self.id}", words)["project"])

    def archive(self) -> None:
        self._master.post(f"/api/v1/projects/{self.id}/archive", None)

    def unarchive(self) -> None:
        self._master.post(f"/api/v1/projects/{self.id}/unarchive", None)


class Workspace(Told):
    """Projects that belong together."""

    def _take(self, raw: Dict[str, Any]) -> None:
        self.id: int = raw["id"]
        self.name: str = raw["name"]
        self.archived: bool = raw["archived"]

    def __repr__(self) -> str:
        return f"Workspace(id={self.id}, name={self.name!r})"

    def reload(self) -> None:
        self._take(self._master.get(f"/api/v1/workspaces/{self.id}")["workspace"])

    def list_pools(self) -> List["ResourcePool"]:
        """Those of the cluster: every workspace may use every pool."""
        return all_pools(self._master)

    def create_project(self, name: str, description: Optional[str] = None) -> Project:
        body = {"name": name, "description": description or ""}
        return Project(self._master, self._master.post(f"/api/v1/workspaces/{self.id}/projects", body)["project"])

    def list_projects(self) -> List[Project]:
        return [Project(self._master, p) for p in projects(self._master, self.id)]

    def get_project(self, project_name: str) -> Project:
        found = projects(self._master, self.id)
        return Project(self._master, by_name(found, project_name, f'workspace "{self.name}" has no project'))

    def delete_project(self, name: str) -> None:
        """One that is empty; Project.archive() hides one and closes it."""
        self._master.delete(f"/api/v1/projects/{self.get_project(name).id}")

    def archive(self) -> None:
        self._master.post(f"/api/v1/workspaces/{self.id}/archive", None)

    def unarchive(self) -> None:
        self._master.post(f"/api/v1/workspaces/{self.id}/unarchive", None)


_NO_BINDINGS = "every workspace may use every pool"


class ResourcePool(Lacking):
    """Agents that jobs may ask for by one name."""

    _LACKS = {
        "add_bindings": _NO_BINDINGS,
        "remove_bindings": _NO_BINDINGS,
        "replace_bindings": _NO_BINDINGS,
        "list_workspaces": _NO_BINDINGS + ": client.list_workspaces()",
    }

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.name: str = raw["name"]
        self.description: str = raw.get("description") or ""
        self.num_agents: int = raw["numAgents"]
        self.slots_available: int = raw["slotsAvailable"]
        self.slots_used: int = raw["slotsUsed"]

    def __repr__(self) -> str:
        return f"ResourcePool(name={self.name!r}, slots_used={self.slots_used}, slots_available={self.slots_available})"


def all_pools(master: Master) -> List[ResourcePool]:
    raw = pages(lambda offset: master.get("/api/v1/resource-pools", offset=offset, limit=200), "resourcePools")
    return [ResourcePool(p) for p in raw]
