// What our own world of a page knows how to do. It runs beside the page's scripts, which cannot touch its builtins; but
// named elements shadow members of `document` and of forms in every world, so members are taken from the prototypes.
(() => {
    const method = (proto, name) => { const f = proto[name]; return (self, ...args) => f.apply(self, args); };
    const member = (proto, name) => { const f = Object.getOwnPropertyDescriptor(proto, name).get; return self => f.call(self); };
    const query = method(Document.prototype, 'querySelector'), all = method(Element.prototype, 'getElementsByTagName');
    const parent = member(Node.prototype, 'parentNode'), owner = member(Node.prototype, 'ownerDocument');
    const connected = member(Node.prototype, 'isConnected'), text = member(Node.prototype, 'textContent');
    const tag = member(Element.prototype, 'localName'), attribute = method(Element.prototype, 'getAttribute');
    const shadow = member(Element.prototype, 'shadowRoot'), rects = method(Element.prototype, 'getClientRects');
    const box = method(Element.prototype, 'getBoundingClientRect'), reveal = method(Element.prototype, 'scrollIntoView');
    const view = member(Document.prototype, 'defaultView'), body = member(Document.prototype, 'body');
    const root = member(Document.prototype, 'documentElement'), closest = method(Element.prototype, 'closest');
    const inDocument = method(Document.prototype, 'elementFromPoint'), inShadow = method(ShadowRoot.prototype, 'elementFromPoint');
    const left = member(Element.prototype, 'clientLeft'), top = member(Element.prototype, 'clientTop');
    const isFrame = el => ['iframe', 'frame'].includes(tag(el));
    const content = el => { try { return el.contentDocument } catch { return null } };
    const cut = (s, n) => { s = String(s ?? '').replace(/\s+/g, ' ').trim(); return s.length > n ? s.slice(0, n) + '…' : s };

    // The page's document and those of its frames that are of the same origin.
    const documents = () => {
        const found = [document];
        for (let n = 0; n < found.length && found.length < 32; n++)
            for (const name of ['iframe', 'frame'])
                for (const frame of all(root(found[n]) ?? document.createElement('a'), name)) {
                    const inner = content(frame);
                    if (inner) found.push(inner);
                }
        return found;
    };
    const find = selector => {
        for (const one of documents()) { const el = query(one, selector); if (el) return el; }
        // Open shadow roots come last: to find them, every element is looked at.
        for (const one of documents()) {
            const waiting = [one];
            while (waiting.length)
                for (const el of waiting.pop().querySelectorAll('*')) {
                    const inner = shadow(el);
                    if (!inner) continue;
                    const hit = inner.querySelector(selector);
                    if (hit) return hit;
                    waiting.push(inner);
                }
        }
        return null;
    };
    // Where the content of a frame begins, in its parent's viewport.
    const inset = frame => {
        const style = getComputedStyle(frame), at = box(frame);
        return [at.left + left(frame) + parseFloat(style.paddingLeft), at.top + top(frame) + parseFloat(style.paddingTop)];
    };
    const offset = el => {
        let [dx, dy] = [0, 0];
        for (let frame = view(owner(el))?.frameElement; frame; frame = view(owner(frame))?.frameElement) {
            const [x, y] = inset(frame);
            [dx, dy] = [dx + x, dy + y];
        }
        return [dx, dy];
    };
    // The innermost element at a point of the page's viewport.
    const at = (x, y) => {
        let found = null;
        for (let from = document, look = inDocument, deep = 0; deep < 32; deep++) {
            const hit = look(from, x, y);
            if (!hit || hit === found) break;
            found = hit;
            const inner = shadow(hit), page = isFrame(hit) ? content(hit) : null;
            if (inner) [from, look] = [inner, inShadow];
            else if (page) { const [dx, dy] = inset(hit); [from, look, x, y] = [page, inDocument, x - dx, y - dy]; }
            else break;
        }
        return found;
    };
    const above = node => parent(node) ?? node.host ?? null;
    const within = (node, el) => { for (; node; node = above(node)) if (node === el) return true; return false; };
    // A click on its label is a click on a control.
    const meant = (hit, el) => within(hit, el) || (hit && closest(hit, 'label')?.control === el);
    const describe = el => {
        if (!el) return null;
        const mark = ['id', 'name', 'type', 'role'].map(name => [name, attribute(el, name)]).filter(([, value]) => value);
        const words = attribute(el, 'aria-label') || (['html', 'body', 'main'].includes(tag(el)) ? '' : text(el));
        return `<${tag(el)}${mark.map(([name, value]) => ` ${name}="${cut(value, 40)}"`).join('')}>` + (cut(words, 40) ? ` "${cut(words, 40)}"` : '');
    };
    const active = () => {
        let el = member(Document.prototype, 'activeElement')(document);
        for (let deep = 0; el && deep < 32; deep++) {
            const inner = shadow(el)?.activeElement ?? (isFrame(el) && content(el)?.activeElement);
            if (!inner) break;
            el = inner;
        }
        return el;
    };
    const pause = ms => new Promise(done => setTimeout(done, ms));
    const patient = async (patience, attempt) => {
        for (const end = performance.now() + patience; ;) {
            const found = attempt();
            if (!found.miss || performance.now() >= end || ['selector', 'stale'].includes(found.miss)) return found;
            await pause(30);
        }
    };
    const pick = ({selector, picked}) => {
        if (picked) return $gb.picked && connected($gb.picked) ? {el: $gb.picked} : {miss: 'stale'};
        try { const el = find(selector); return el ? {el} : {miss: 'none'}; }
        catch (error) { return {miss: 'selector', says: String(error.message)}; }
    };
    // A point of an element where it is the one that a click would meet; else what lies there.
    const aim = el => {
        let covered = null, outside = true;
        const [dx, dy] = offset(el);
        for (const {left, top, width, height} of [...rects(el)].slice(0, 8)) {
            if (!width || !height) continue;
            for (const [u, v] of [[.5, .5], [.25, .25], [.75, .25], [.25, .75], [.75, .75]]) {
                const [x, y] = [dx + left + u * width, dy + top + v * height];
                if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
                outside = false;
                const hit = at(x, y);
                if (meant(hit, el)) return {x, y};
                covered ??= {x, y, by: describe(hit)};
            }
        }
        return covered ? {miss: 'covered', ...covered} : {miss: outside ? 'outside' : 'hidden'};
    };
    const locate = ({covered = false, patience, ...target}) => patient(patience, () => {
        if (target.at) {
            let [x, y] = target.at;
            if (target.document) {
                const inView = () => x - scrollX >= 0 && y - scrollY >= 0 && x - scrollX < innerWidth && y - scrollY < innerHeight;
                if (!inView()) scrollTo({left: x - innerWidth / 2, top: y - innerHeight / 2, behavior: 'instant'});
                [x, y] = [x - scrollX, y - scrollY];
            }
            if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return {miss: 'outside', size: [innerWidth, innerHeight]};
            $gb.target = at(x, y);
            return {x, y, on: describe($gb.target)};
        }
        const {el, ...miss} = pick(target);
        if (!el) return miss;
        const on = describe(el), style = getComputedStyle(el);
        if (![...rects(el)].some(({width, height}) => width && height) || style.visibility !== 'visible') return {miss: 'hidden', on};
        let spot = aim(el);
        if (spot.miss) { reveal(el, {block: 'center', inline: 'center', behavior: 'instant'}); spot = aim(el); }
        $gb.target = el;
        if (spot.miss === 'covered' && covered) delete spot.miss;
        return {...spot, on};
    });

    // Whether what is sent arrives, and whether it changes anything. Captured at the window, before the page's own elements.
    const watch = ({kinds, aimed}) => {
        $gb.witness?.stop();
        const seen = {received: 0, changed: 0, forged: 0}, views = new Set([window]);
        const target = aimed ? $gb.target : null;
        if (target && view(owner(target))) views.add(view(owner(target)));
        const heard = event => {
            if (!event.isTrusted) { seen.forged++; return; }
            if (!target || event.composedPath().some(node => node === target) || meant(event.target, target)) seen.received++;
        };
        const moved = () => { seen.changed++; };
        const lifted = event => { if (event.isTrusted) $gb.witness.lifted = event; };
        const observer = new MutationObserver(moved), signs = ['input', 'change', 'focusin', 'scroll', 'toggle'];
        for (const one of views) {
            kinds.forEach(kind => one.addEventListener(kind, heard, {capture: true, passive: true}));
            signs.forEach(kind => one.addEventListener(kind, moved, {capture: true, passive: true}));
            one.addEventListener('dragstart', lifted, {capture: true, passive: true});
            observer.observe(one.document, {subtree: true, childList: true, attributes: true, characterData: true});
        }
        const stop = () => {
            observer.disconnect();
            for (const one of views) {
                kinds.forEach(kind => one.removeEventListener(kind, heard, {capture: true}));
                signs.forEach(kind => one.removeEventListener(kind, moved, {capture: true}));
                one.removeEventListener('dragstart', lifted, {capture: true});
            }
        };
        $gb.witness = {seen, stop, lifted: null};
        return true;
    };
    // Whether the page has let a drag and drop begin.
    const dragging = () => Boolean($gb.witness?.lifted && !$gb.witness.lifted.defaultPrevented);
    const testify = async () => {
        await pause(0);
        const {seen, stop} = $gb.witness ?? {seen: {received: 0, changed: 0}, stop() {}};
        // What a framework draws, it draws with the next frame.
        if (!seen.changed) await Promise.race([pause(40), new Promise(done => requestAnimationFrame(() => setTimeout(done)))]);
        stop();
        return {received: seen.received, changed: seen.changed > 0, url: location.href, title: document.title};
    };

    const field = el => el && (['input', 'textarea'].includes(tag(el)) ? el : null);
    const written = el => field(el) ? el.value : el?.isContentEditable ? el.innerText : null;
    const focus = clear => {
        const el = $gb.target;
        if (el) HTMLElement.prototype.focus.call(el, {preventScroll: true});
        const now = active();
        if (!el || !within(now, el) && !within(el, now)) return false;
        try {
            if (field(now)) clear ? now.select() : now.setSelectionRange(now.value.length, now.value.length);
            else if (now.isContentEditable) { const all = getSelection(); all.selectAllChildren(now); if (!clear) all.collapseToEnd(); }
        } catch { /* a field without a caret, like a date */ }
        return true;
    };
    const holds = wanted => {
        const el = active(), value = written(el), on = describe(el);
        if (value === null) return {on, value: null};
        const plain = s => s.replace(/\s+/g, ' ').trim();
        const shown = el.type === 'password' ? `(a password of ${value.length} characters)` : cut(value, 200);
        return {on, value: shown, holds: plain(value).includes(plain(wanted))};
    };

    // What a wheel at a point may scroll.
    const scrollers = ([x, y]) => {
        const found = [];
        for (let el = at(x, y); el; el = above(el) ?? (el.nodeType === 9 ? view(el)?.frameElement : null))
            if (el.nodeType === 1) found.push(el);
        $gb.scrolling = found.map(el => [el, el.scrollLeft, el.scrollTop]);
        return true;
    };
    const scrolled = async () => {
        const sum = () => $gb.scrolling.map(([el, x, y]) => [el.scrollLeft - x, el.scrollTop - y]);
        const end = performance.now() + 1500;
        let last = '', same = 0, first = true;
        while (performance.now() < end && same < (first ? 10 : 4)) {
            await pause(16);
            const now = JSON.stringify(sum());
            if (now === last) same++; else { first &&= last === ''; [last, same] = [now, 0]; }
        }
        const moved = sum(), which = moved.findIndex(([x, y]) => x || y);
        if (which < 0) return null;
        const [el] = $gb.scrolling[which];
        return {by: moved[which].map(Math.round), to: [Math.round(el.scrollLeft), Math.round(el.scrollTop)], of: describe(el)};
    };
    const choose = ({wanted, patience, ...target}) => patient(patience, () => {
        const {el, ...miss} = pick(target);
        if (!el) return miss;
        const on = describe(el);
        if (tag(el) !== 'select') return {miss: 'no_select', on};
        const options = [...el.options], label = option => cut(option.label, 80);
        const found = wanted.map(want => typeof want === 'number' ? options[want]
            : options.find(option => option.value === want) ?? options.find(option => cut(option.label, 1e4) === cut(want, 1e4)));
        const lost = found.findIndex(option => !option);
        if (lost >= 0) return {miss: 'no_option', on, says: String(wanted[lost]), options: options.slice(0, 20).map(label), count: options.length};
        if (el.disabled || found.some(option => option.disabled)) return {miss: 'disabled', on};
        if (found.length > 1 && !el.multiple) return {miss: 'one_only', on};
        options.forEach(option => { option.selected = found.includes(option); });
        for (const kind of ['input', 'change']) el.dispatchEvent(new Event(kind, {bubbles: true, composed: kind === 'input'}));
        return {on, selected: [...el.selectedOptions].slice(0, 20).map(option => ({value: cut(option.value, 80), label: label(option)}))};
    });
    const plainText = () => documents().map(one => member(HTMLElement.prototype, 'innerText')(body(one) ?? document.createElement('a'))).join(' ').replace(/\s+/g, ' ');
    const seen = el => el && [...rects(el)].some(({width, height}) => width && height);
    const until = async ({text, gone, selector, patience}) => {
        const words = text?.replace(/\s+/g, ' ').trim();
        const end = performance.now() + patience;
        for (; ;) {
            try {
                if (words !== undefined ? plainText().includes(words) : selector !== undefined ? find(selector) : !seen(find(gone))) return {};
            } catch (error) { return {miss: 'selector', says: String(error.message)}; }
            if (performance.now() >= end) return {miss: 'timeout'};
            await pause(words === undefined ? 30 : 100);
        }
    };
    const exists = target => { const {el, ...miss} = pick(target); $gb.found = el; return miss; };
    const measure = ({selector}) => {
        const {el, ...miss} = selector === undefined ? {el: root(document)} : pick({selector});
        return el ? {elements: all(el, '*').length, url: location.href, title: document.title} : miss;
    };
    const $gb = {measure, dragging, locate, watch, testify, focus, holds, scrollers, scrolled, choose, until, exists, ready: () => location.href};
    return $gb;
})()
