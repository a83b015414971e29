// What takes longer than its page is fetched after it. Without scripts the link in its place leads there.
"use strict";
for (const place of document.querySelectorAll("[data-fill]")) {
    fetch(place.dataset.fill, { headers: { "X-Requested-With": "fetch" } })
        .then((answer) => (answer.ok && !answer.redirected ? answer.text() : Promise.reject(answer.status)))
        .then((html) => {
            place.innerHTML = html;
            place.dataset.filled = "yes";
        })
        .catch(() => {}); // the link stays
}
