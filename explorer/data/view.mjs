// Your data: drop a file, look at its heads.
export const data = {
  mount(root, app) {
    root.append(app.say('data.title'));
    return {};
  },
};
