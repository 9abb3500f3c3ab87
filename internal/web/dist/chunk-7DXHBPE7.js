var t=e=>Object.assign(Object.create(null),e);export{t as a};
