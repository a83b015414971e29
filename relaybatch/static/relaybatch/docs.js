// Scripts within the page are forbidden by its Content-Security-Policy, so this stands in a file.
const element = document.getElementById("docs");
SwaggerUIBundle({
  url: element.dataset.document,
  domNode: element,
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
