// The API in Swagger UI. A token that the main page was given in this tab is sent here, too.

function remembered() {
  try {
    return sessionStorage.getItem("maxdisc-token") || "";
  } catch {
    return "";
  }
}

function authorized(request) {
  const token = remembered();
  if (token) request.headers.Authorization = `Bearer ${token}`;
  return request;
}

const place = document.getElementById("swagger-ui");
const answer = await fetch("openapi.json", authorized({ headers: {} }));
if (answer.ok) {
  SwaggerUIBundle({
    spec: await answer.json(),
    domNode: place,
    presets: [SwaggerUIBundle.presets.apis],
    deepLinking: true,
    requestInterceptor: authorized,
  });
} else if (answer.status === 401) {
  const link = document.createElement("a");
  link.href = "./";
  link.textContent = "Give it on the main page";
  place.append("This service asks for a token. ", link, " and come back in this tab.");
} else place.append(`The description of the API cannot be read: status ${answer.status}.`);
