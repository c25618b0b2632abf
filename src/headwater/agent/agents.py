"""The agents of a configuration, ready to be asked: built in one place."""

from msgspec.structs import replace

from headwater.agent import demo
from headwater.agent.calls import Calls
from headwater.agent.demo import DemoTools
from headwater.agent.gate import Gate
from headwater.agent.loading import Unloaded, load
from headwater.agent.loop import Limits, Loop
from headwater.agent.mcp.servers import Servers
from headwater.agent.own import Means, OwnAgent
from headwater.agent.pictures import Pictures
from headwater.agent.tools import Toolbox, Toolboxes
from headwater.agent.watch import Watch
from headwater.agent.watched import Broken, Watched, told
from headwater.clock import Clock
from headwater.config.settings import AgentSettings, Settings
from headwater.conversation import Parameters, Request, System, Text
from headwater.errors import CallerError
from headwater.events import Failed
from headwater.records import Run
from headwater.sessions.context import Context
from headwater.source import Source
from headwater.store.base import Store
from headwater.upstream.model import Model
from headwater.upstream.upstreams import Upstreams


class Agents:
    """Made inside the event loop that it will run on; `close` it there."""

    def __init__(self, settings: Settings, upstreams: Upstreams, store: Store, clock: Clock) -> None:
        self._agents: dict[str, AgentSettings] = {**settings.agents, demo.NAME: demo.SETTINGS}
        self._upstreams = upstreams
        self._store = store
        self._clock = clock
        self._demo_tools = DemoTools(clock)
        self._servers = Servers(settings.mcp, clock)
        self._watch = Watch()
        self._own = {name: load(name, agent.python) for name, agent in settings.agents.items() if agent.python}

    def __contains__(self, name: str) -> bool:
        return name in self._agents

    async def check(self, name: str, request: Request) -> None:
        """Raises `CallerError` for what this agent can't be asked."""
        if request.tools:
            message = f"'{name}' is an agent, and has tools of its own."
            raise CallerError(message, code="unsupported_parameter", param="tools")
        agent = self._agents[name]
        if agent.model is not None:
            (await self._upstreams.model(agent.model)).check(_asked(request, agent))

    async def window_tokens(self, name: str) -> int | None:
        """What fits into its context; None: not known. Raises `CallerError`."""
        agent = self._agent(name)
        return None if agent.model is None else (await self._upstreams.model(agent.model)).context_tokens

    async def source(self, run: Run, context: Context) -> Source:
        """What answers a run of an agent. Raises `CallerError`."""
        name = run.agent or run.model
        agent = self._agent(name)
        if agent.model is None:
            return self._own_agent(run, name, agent, context)
        return self._loop(run, agent, await self._upstreams.model(agent.model), context)

    async def close(self) -> None:
        """All servers of tools that were started for it end."""
        await self._servers.close()
        self._watch.close()

    def _agent(self, name: str) -> AgentSettings:
        if name not in self._agents:
            raise CallerError(f"There is no agent '{name}' any more.", status=404, code="model_not_found")
        return self._agents[name]

    def _loop(self, run: Run, agent: AgentSettings, model: Model, context: Context) -> Loop:
        pictures = Pictures(self._store, run.owner)
        toolbox = self._toolbox(run, agent)
        gate = Gate(self._store, self._clock, run, agent.approve, agent.approve_timeout_s)
        calls = Calls(toolbox, gate, pictures, self._clock, result_chars=agent.result_limit_chars)
        limits = Limits(max_turns=agent.max_turns, budget_tokens=agent.budget_tokens)
        context = replace(context, request=_asked(context.request, agent))
        return Loop(run, model, context, toolbox, calls, pictures, limits)

    def _own_agent(self, run: Run, name: str, agent: AgentSettings, context: Context) -> Source:
        found = self._own[name]
        if isinstance(found, Unloaded):
            return Broken(Failed("agent_error", f"The agent '{name}' can't be used: {found.why}"))
        toolbox = self._toolbox(run, agent)
        pictures = Pictures(self._store, run.owner)
        calls = Calls(toolbox, None, pictures, self._clock, result_chars=agent.result_limit_chars)
        means = Means(self._upstreams, toolbox, calls)
        own = OwnAgent(found, run, told(context), means, agent.cleanup_timeout_s)
        return Watched(own, self._watch, f"The agent '{name}' ({run.id})", context.notice)

    def _toolbox(self, run: Run, agent: AgentSettings) -> Toolbox:
        if agent is demo.SETTINGS:
            return self._demo_tools
        return Toolboxes({name: self._servers.toolbox(name, run) for name in agent.tools})


def _asked(request: Request, agent: AgentSettings) -> Request:
    """With the agent's own instructions first, and within its limits."""
    system = (System((Text(agent.system),)),) if agent.system else ()
    return replace(
        request,
        messages=(*system, *request.messages),
        parameters=_limited(request.parameters, agent.max_tokens),
    )


def _limited(parameters: Parameters, most: int | None) -> Parameters:
    if most is None or (parameters.max_tokens is not None and parameters.max_tokens <= most):
        return parameters
    return replace(parameters, max_tokens=most)
