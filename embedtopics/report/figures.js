for (const data of document.querySelectorAll('script[id^="figure-"]')) {
  const figure = JSON.parse(data.textContent);
  const place = document.getElementById("place-" + data.id);
  if (figure.layout.width > place.clientWidth) figure.layout.width = place.clientWidth;
  Plotly.newPlot(place, figure.data, figure.layout, {displayModeBar: false});
}
