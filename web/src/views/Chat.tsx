/** A conversation, or the place where one begins. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { go, paths } from "../router";
import { newSessionId, OpenSession, opened } from "../session";
import { chooseModel, fail, modelForNew, sidebarOpen } from "../state";
import type { Parameters } from "../wire";
import { type Composed, Composer } from "./Composer";
import { Empty } from "./Empty";
import { Icon } from "./Icon";
import { ModelPicker } from "./ModelPicker";
import { QueueList } from "./QueueList";
import { SessionFigures } from "./SessionFigures";
import { Settings } from "./Settings";
import { Thread } from "./Thread";

const newParameters = signal<Parameters>({});

export function NewChat() {
  const [settings, setSettings] = useState(false);
  const model = modelForNew.value;
  const send = async (said: Composed) => {
    const session = new OpenSession(newSessionId());
    session.loaded.value = true;
    try {
      await api.createSession(session.id, { ...newParameters.value, ...(model ? { model } : {}) });
    } catch (error) {
      session.close();
      fail(error);
      return false;
    }
    newParameters.value = {};
    opened.value = session;
    go(paths.session(session.id));
    return session.send({ content: said.content, parts: said.parts });
  };
  return (
    <main class="main new">
      <Head title="New chat" open={() => setSettings(true)} />
      <div class="thread-place">
        <div class="thread centred">
          <Empty />
        </div>
      </div>
      <div class="foot">
        <Composer place="new" busy={false} send={send}>
          <ModelPicker chosen={model} choose={chooseModel} />
        </Composer>
      </div>
      {settings && (
        <Settings
          parameters={newParameters.value}
          save={(given) => {
            newParameters.value = given;
          }}
          close={() => setSettings(false)}
        />
      )}
    </main>
  );
}

export function Chat({ id }: { id: string }) {
  useEffect(() => {
    if (opened.peek()?.id !== id) {
      opened.peek()?.close();
      opened.value = new OpenSession(id);
    }
    const session = opened.peek()!;
    void session.load();
    return () => {
      session.close();
      if (opened.peek() === session) opened.value = null;
    };
  }, [id]);
  const session = opened.value;
  const [settings, setSettings] = useState(false);
  if (!session || session.id !== id) return <main class="main" />;
  const parameters = session.info.value?.parameters ?? {};
  if (session.missing.value) return <Gone />;
  const busy = session.isBusy;
  return (
    <main class="main">
      <Head title={session.title} open={() => setSettings(true)}>
        <SessionFigures session={session} />
      </Head>
      <Thread key={id} session={session} />
      <div class="foot">
        <QueueList session={session} />
        <Composer
          place={id}
          busy={busy}
          canQueue
          stopping={session.stopping.value}
          send={(said) => session.send({ ...said, ...(busy ? {} : { multitask: "reject" }) })}
          stop={() => void session.stop()}
        >
          <ModelPicker
            chosen={parameters.model ?? modelForNew.value}
            choose={(model) => {
              chooseModel(model);
              void session.change({ parameters: { ...parameters, model } });
            }}
          />
        </Composer>
      </div>
      {settings && (
        <Settings
          parameters={parameters}
          save={(given) => void session.change({ parameters: given })}
          close={() => setSettings(false)}
        />
      )}
    </main>
  );
}

interface HeadProps {
  title: string;
  open?(): void;
  children?: preact.ComponentChildren;
}

export function Head({ title, open, children }: HeadProps) {
  return (
    <header class="head">
      <button
        type="button"
        class="icon-button only-narrow"
        aria-label="Conversations"
        onClick={() => {
          sidebarOpen.value = true;
        }}
      >
        <Icon name="menu" />
      </button>
      <h1 class="head-title">{title}</h1>
      {children}
      {open && (
        <button
          type="button"
          class="icon-button"
          aria-label="Conversation settings"
          title="Conversation settings"
          onClick={open}
        >
          <Icon name="sliders" />
        </button>
      )}
    </header>
  );
}

function Gone() {
  return (
    <main class="main">
      <Head title="Not here" />
      <div class="thread-place">
        <div class="thread centred">
          <div class="empty">
            <h1>There is no such conversation</h1>
            <p class="lead">It was deleted, or belongs to somebody else.</p>
            <a class="button primary" href={paths.home}>
              Start a new one
            </a>
          </div>
        </div>
      </div>
    </main>
  );
}
