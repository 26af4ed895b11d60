// The words of Your data.
export const data = {
  'data.title': {en: 'Your data', zh: '你的数据'},
};
